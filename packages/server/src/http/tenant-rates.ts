import type { Clock, Tenants } from '@carillon/core'

interface TenantRatesDeps {
  readonly tenants: Pick<Tenants, 'get'>
  readonly clock: Clock
}

interface Known {
  readonly readAt: number
  readonly rate: Promise<number | null>
}

const GOOD_FOR_MS = 10_000
const TENANTS_MAX = 1000

/**
 * How many requests a minute a tenant's keys may send, where it has a limit of its own. Remembered for ten seconds, so that
 * a request costs no question, and of the tenants that asked last only.
 */
export class TenantRates {
  readonly #deps: TenantRatesDeps
  /** Those that asked last are at the end. */
  readonly #known = new Map<string, Known>()

  constructor(deps: TenantRatesDeps) {
    this.#deps = deps
  }

  /** Null: as the installation says. */
  find(tenantId: string): Promise<number | null> {
    const now = this.#deps.clock.monotonicMs()
    const before = this.#known.get(tenantId)
    const known = before !== undefined && now - before.readAt < GOOD_FOR_MS ? before : this.#ask(tenantId, now)
    this.#known.delete(tenantId)
    this.#known.set(tenantId, known)
    const [oldest] = this.#known.keys()
    if (this.#known.size > TENANTS_MAX && oldest !== undefined) this.#known.delete(oldest)
    return known.rate
  }

  /** One question, however many wait for its answer. What failed is not remembered. */
  #ask(tenantId: string, now: number): Known {
    const asked: Known = { readAt: now, rate: this.#read(tenantId) }
    void asked.rate.catch(() => {
      if (this.#known.get(tenantId) === asked) this.#known.delete(tenantId)
    })
    return asked
  }

  async #read(tenantId: string): Promise<number | null> {
    return (await this.#deps.tenants.get(tenantId)).requestsPerMinute
  }
}
