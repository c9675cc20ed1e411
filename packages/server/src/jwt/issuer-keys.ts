import type { Clock } from '@carillon/core'
import { createLocalJWKSet, errors, type JSONWebKeySet, type JWTVerifyGetKey } from 'jose'
import type { Logger } from 'pino'

import { fetchJson } from '../bounded-fetch.ts'
import { JwtKeysUnavailableError } from './jwt-keys-unavailable-error.ts'

/** After which keys are fetched anew, while those that are held go on being used. */
const REFRESH_MS = 10 * 60 * 1000
/**
 * Nobody asked for so long: whoever does now waits for the keys to be fetched. So a key that the issuer withdrew is not taken
 * for good after a quiet night, unless the issuer cannot be reached.
 */
const QUIET_MS = 2 * REFRESH_MS
/** How long keys are used though they cannot be fetched anew. */
const KEEP_MS = 24 * 60 * 60 * 1000
/** Between two fetches, failed ones too. Anybody can send tokens that name keys nobody has. */
const COOLDOWN_MS = 30 * 1000
/** The same while there is no key at all, and so nobody can be let in. */
const FIRST_COOLDOWN_MS = 1000
const TIMEOUT_MS = 5000
const MAX_BYTES = 1024 * 1024

interface IssuerKeysDeps {
  /** Of the issuer's JWK set (RFC 7517). */
  readonly url: string
  readonly clock: Pick<Clock, 'monotonicMs' | 'after'>
  readonly logger?: Pick<Logger, 'warn'> | undefined
}

interface HeldKeys {
  readonly find: ReturnType<typeof createLocalJWKSet>
  readonly fetchedAt: number
}

/**
 * The public keys of who issues tokens. jose's own remote set would do, but for two things: it refuses everybody when the keys
 * are old and the issuer is down, and it asks again at once after a failure.
 */
export class IssuerKeys {
  readonly #deps: IssuerKeysDeps
  #held: HeldKeys | undefined
  #fetching: Promise<void> | undefined
  #endedAt = Number.NEGATIVE_INFINITY
  #failure: unknown

  constructor(deps: IssuerKeysDeps) {
    this.#deps = deps
  }

  /**
   * The key that a token says it was signed with. Where the token says that its key is to be found plays no part.
   * @throws JwtKeysUnavailableError; an error of jose if there is no such key
   */
  readonly find: JWTVerifyGetKey = async (header, token) => {
    const held = await this.#current()
    try {
      return await held.find(header, token)
    } catch (error) {
      if (!(error instanceof errors.JWKSNoMatchingKey)) throw error
      await this.#refresh(COOLDOWN_MS)
      if (this.#held === held || this.#held === undefined) throw error
      return this.#held.find(header, token)
    }
  }

  async #current(): Promise<HeldKeys> {
    if (this.#usable() === undefined) await this.#refresh(FIRST_COOLDOWN_MS)
    else if (this.#ageOf(this.#held?.fetchedAt) >= REFRESH_MS) {
      // Asked before the fetch begins, and true until it ends: everybody who comes meanwhile waits as well.
      const isQuiet = this.#ageOf(this.#endedAt) >= QUIET_MS
      const refreshed = this.#refresh(COOLDOWN_MS)
      if (isQuiet) await refreshed
    }
    const held = this.#usable()
    if (held === undefined) throw new JwtKeysUnavailableError(this.#deps.url, { cause: this.#failure })
    return held
  }

  #usable(): HeldKeys | undefined {
    return this.#ageOf(this.#held?.fetchedAt) <= KEEP_MS ? this.#held : undefined
  }

  #ageOf(at = Number.NEGATIVE_INFINITY): number {
    return this.#deps.clock.monotonicMs() - at
  }

  /** One fetch at a time, whoever waits for it; none so soon after the last. Never rejects. */
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
      // jose looks at the shape, and refuses another.
      this.#held = { find: createLocalJWKSet(answer as JSONWebKeySet), fetchedAt: clock.monotonicMs() }
    } catch (error) {
      this.#failure = error
      logger?.warn({ event: 'jwt.keys_not_fetched', url, error }, 'the keys of the issuer of tokens were not fetched')
    } finally {
      this.#endedAt = clock.monotonicMs()
      this.#fetching = undefined
    }
  }
}
