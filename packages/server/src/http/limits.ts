import type { Clock, Tenants } from '@carillon/core'
import rateLimit, { normalizeIP } from '@fastify/rate-limit'
import type { FastifyInstance, FastifyRequest } from 'fastify'
import { LRUCache } from 'lru-cache'

import type { Identity } from '../auth/identity.ts'
import { ProblemError } from './problems.ts'

const WINDOW_MS = 60_000
/** The rate limit of one IP address without a valid key: enough to read the reference, too little to guess a key. */
const ANONYMOUS_PER_MINUTE = 600

/** Route options without a rate limit, for cheap routes that machines call all day. */
export const WITHOUT_RATE_LIMIT = { config: { rateLimit: false as const } }

/**
 * Limits requests per key in this process, or per IP address if a request has no valid key, or if its handler proves the caller itself.
 * The limit is checked right after authentication, before any other work.
 */
export async function limitRates(
  app: FastifyInstance,
  { requestsPerMinute, tenantRates }: { readonly requestsPerMinute: number; readonly tenantRates: TenantRates },
): Promise<void> {
  const limitOf = async ({ isInstallation, caller }: Identity): Promise<number> => {
    // The admin key is exempt from a tenant's limit: an operator must be able to raise one that was set too low.
    const own = isInstallation ? null : await tenantRates.find(caller.tenantId)
    return own ?? requestsPerMinute
  }
  await app.register(rateLimit, {
    timeWindow: WINDOW_MS,
    max: async ({ identity, routeOptions }: FastifyRequest) => {
      if (identity !== undefined) return limitOf(identity)
      // A system that completes many runs calls back as often as another one that has a key.
      return routeOptions.config.access === 'own' ? requestsPerMinute : ANONYMOUS_PER_MINUTE
    },
    keyGenerator: ({ identity, ip, routeOptions }: FastifyRequest) => {
      if (identity !== undefined) return `key ${identity.keyId}`
      return `${routeOptions.config.access === 'own' ? 'caller' : 'ip'} ${normalizeIP(ip)}`
    },
    enableDraftSpec: true,
    errorResponseBuilder: (_request, { max, ttl }) => {
      const seconds = Math.ceil(ttl / 1000)
      const detail = `expected at most ${max} requests a minute, got more: wait ${seconds} s`
      return new ProblemError('rate_limited', detail, { headers: { 'retry-after': String(seconds) } })
    },
  })
}

interface TenantRatesDeps {
  readonly tenants: Pick<Tenants, 'get'>
  readonly clock: Clock
}

interface CachedRate {
  readonly readAt: number
  readonly rate: Promise<number | null>
}

const RATE_TTL_MS = 10_000
const TENANTS_MAX = 1000

/** A cache of the rate limits that tenants set for their keys, so that a request costs no query. */
export class TenantRates {
  readonly #deps: TenantRatesDeps
  /** Without the `ttl` of lru-cache, which has a clock of its own: `find` checks the age of an entry by `clock`. */
  readonly #cache = new LRUCache<string, CachedRate>({ max: TENANTS_MAX })

  constructor(deps: TenantRatesDeps) {
    this.#deps = deps
  }

  /** Returns the requests per minute that each key of a tenant may send. Null: the tenant has no limit of its own. */
  find(tenantId: string): Promise<number | null> {
    const now = this.#deps.clock.monotonicMs()
    const cached = this.#cache.get(tenantId)
    if (cached !== undefined && now - cached.readAt < RATE_TTL_MS) return cached.rate
    const entry = { readAt: now, rate: this.#read(tenantId) }
    this.#cache.set(tenantId, entry)
    // A failed query is not cached.
    void entry.rate.catch(() => {
      if (this.#cache.peek(tenantId) === entry) this.#cache.delete(tenantId)
    })
    return entry.rate
  }

  async #read(tenantId: string): Promise<number | null> {
    return (await this.#deps.tenants.get(tenantId)).requestsPerMinute
  }
}

interface ConcurrencyOptions {
  readonly max: number
  /** Names in a refusal what is limited, in the plural: `streams`. */
  readonly noun: string
  readonly retryAfterSeconds: number
}

/** Limits how many things of one kind a key may have open at a time, in this process. */
export class KeyConcurrency {
  readonly #options: ConcurrencyOptions
  readonly #open = new Map<string, number>()

  constructor(options: ConcurrencyOptions) {
    this.#options = options
  }

  /** Each successful call needs one `release`. @throws ProblemError if the key has too many open */
  acquire(keyId: string): void {
    const { max, noun, retryAfterSeconds } = this.#options
    const open = this.#open.get(keyId) ?? 0
    if (open >= max) {
      const detail = `expected at most ${max} ${noun} of one key at a time, got another: wait until one ends`
      throw new ProblemError('rate_limited', detail, { headers: { 'retry-after': String(retryAfterSeconds) } })
    }
    this.#open.set(keyId, open + 1)
  }

  release(keyId: string): void {
    const open = (this.#open.get(keyId) ?? 0) - 1
    if (open > 0) this.#open.set(keyId, open)
    else this.#open.delete(keyId)
  }
}
