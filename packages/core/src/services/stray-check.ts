import { PeriodicService, type ServiceDeps } from '../service.ts'

export interface StrayCheckDeps extends ServiceDeps {
  /** Looks for runs that the ledger says this worker holds, and that it does not know of; says how many there are. */
  readonly lookForStrays: () => Promise<number>
}

const PERIOD_MS = 60_000

/** Has a worker look once a minute for runs in its own name that it does not hold. Its lease lives, so no rescuer looks for them. */
export class StrayCheck extends PeriodicService<{ readonly found: number }> {
  override readonly name = 'stray check'
  readonly #deps: StrayCheckDeps

  constructor(deps: StrayCheckDeps) {
    super(deps, PERIOD_MS)
    this.#deps = deps
  }

  async runOnce(): Promise<{ readonly found: number }> {
    return { found: await this.#deps.lookForStrays() }
  }
}
