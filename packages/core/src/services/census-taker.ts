import type { Clock } from '../clock.ts'
import type { Events } from '../events.ts'
import { PeriodicService } from '../service.ts'
import { takeCensus, type Census } from '../store/census.ts'
import type { Db } from '../store/database.ts'

/** Counts for the metrics, at its own pace: a scrape must never cost a scan. */
export class CensusTaker extends PeriodicService<Census> {
  override readonly name = 'census'
  readonly #deps: { readonly db: Db; readonly clock: Clock; readonly events: Events }
  #latest: Census | undefined

  constructor(
    deps: { readonly db: Db; readonly clock: Clock; readonly events: Events },
    options: { periodMs: number },
  ) {
    super(deps, options.periodMs)
    this.#deps = deps
  }

  get latest(): Census | undefined {
    return this.#latest
  }

  async runOnce(): Promise<Census> {
    const { db, clock } = this.#deps
    this.#latest = await takeCensus(db, { now: clock.databaseNow() })
    return this.#latest
  }
}
