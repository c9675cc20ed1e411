import type { Clock } from '@carillon/core'
import { createLocalJWKSet, errors, type JSONWebKeySet, type JWTVerifyGetKey } from 'jose'
import type { Logger } from 'pino'

import { fetchJson } from './fetch-json.ts'

/** Cached keys that are older than this are fetched again in the background and stay in use meanwhile. */
const REFRESH_MS = 10 * 60 * 1000
/**
 * If the last fetch ended longer ago than this, the next caller waits for a new fetch. So a key that the issuer withdrew
 * overnight is not accepted in the morning, unless the issuer cannot be reached.
 */
const QUIET_MS = 2 * REFRESH_MS
/** The greatest age of cached keys that are used while fetching fails. With older ones no token can be verified. */
const KEEP_MS = 24 * 60 * 60 * 1000
/**
 * The shortest pause between two fetches, failed ones included. Without it, tokens with made-up key ids would make Carillon
 * flood the issuer with fetches.
 */
const COOLDOWN_MS = 30 * 1000
/** The shortest pause between two fetches while no usable keys are cached. It is short because no token can be verified then. */
const FIRST_COOLDOWN_MS = 1000
const TIMEOUT_MS = 5000
const MAX_BYTES = 1024 * 1024

interface IssuerKeysDeps {
  /** The issuer's JWK set (RFC 7517). */
  readonly url: string
  readonly clock: Pick<Clock, 'monotonicMs' | 'after'>
  readonly logger?: Pick<Logger, 'warn'> | undefined
}

interface CachedKeys {
  readonly find: ReturnType<typeof createLocalJWKSet>
  readonly fetchedAt: number
}

/** A token cannot be verified: its issuer's keys are not cached, or are too old, and cannot be fetched. */
export class JwtKeysUnavailableError extends Error {
  override readonly name = 'JwtKeysUnavailableError'

  constructor(url: string, options: ErrorOptions) {
    super(`expected the keys of the issuer of tokens at ${url}, got none: see the cause`, options)
  }
}

/**
 * A cache of the public keys of the token issuer. jose's own remote key set is not used for two reasons: it refuses every
 * token when its keys are old and the issuer is down, and after a failed fetch it tries again without a pause.
 */
export class IssuerKeys {
  readonly #deps: IssuerKeysDeps
  #cached: CachedKeys | undefined
  #fetching: Promise<void> | undefined
  #endedAt = Number.NEGATIVE_INFINITY
  #failure: unknown

  constructor(deps: IssuerKeysDeps) {
    this.#deps = deps
  }

  /**
   * Finds the key that signed a token. Key URLs inside the token (`jku`, `x5u`) are ignored.
   * @throws JwtKeysUnavailableError, or an error of jose if the issuer has no such key
   */
  readonly find: JWTVerifyGetKey = async (header, token) => {
    const cached = await this.#current()
    try {
      return await cached.find(header, token)
    } catch (error) {
      if (!(error instanceof errors.JWKSNoMatchingKey)) throw error
      await this.#refresh(COOLDOWN_MS)
      if (this.#cached === cached || this.#cached === undefined) throw error
      return this.#cached.find(header, token)
    }
  }

  async #current(): Promise<CachedKeys> {
    if (this.#usable() === undefined) await this.#refresh(FIRST_COOLDOWN_MS)
    else if (this.#ageOf(this.#cached?.fetchedAt) >= REFRESH_MS) {
      // Computed before the fetch begins. Until the fetch ends it is true for concurrent callers too, so they wait as well.
      const isQuiet = this.#ageOf(this.#endedAt) >= QUIET_MS
      const refreshed = this.#refresh(COOLDOWN_MS)
      if (isQuiet) await refreshed
    }
    const cached = this.#usable()
    if (cached === undefined) throw new JwtKeysUnavailableError(this.#deps.url, { cause: this.#failure })
    return cached
  }

  #usable(): CachedKeys | undefined {
    return this.#ageOf(this.#cached?.fetchedAt) <= KEEP_MS ? this.#cached : undefined
  }

  #ageOf(at = Number.NEGATIVE_INFINITY): number {
    return this.#deps.clock.monotonicMs() - at
  }

  /** Waits for the fetch in progress, or starts one unless the last ended within `cooldownMs`. Never rejects. */
  async #refresh(cooldownMs: number): Promise<void> {
    if (this.#fetching === undefined && this.#ageOf(this.#endedAt) < cooldownMs) return
    this.#fetching ??= this.#fetch()
    await this.#fetching
  }

  async #fetch(): Promise<void> {
    const { url, clock, logger } = this.#deps
    try {
      const headers = { accept: 'application/jwk-set+json, application/json' }
      const bounds = { timeoutMs: TIMEOUT_MS, maxBytes: MAX_BYTES, clock }
      const answer = await fetchJson({ url, method: 'GET', headers }, bounds)
      // jose checks the shape of the answer and throws if it is not a JWK set.
      this.#cached = { find: createLocalJWKSet(answer as JSONWebKeySet), fetchedAt: clock.monotonicMs() }
    } catch (error) {
      this.#failure = error
      logger?.warn({ event: 'jwt.keys_not_fetched', url, error }, 'the keys of the token issuer could not be fetched')
    } finally {
      this.#endedAt = clock.monotonicMs()
      this.#fetching = undefined
    }
  }
}
