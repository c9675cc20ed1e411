import type { Clock } from '../clock.ts'
import type { Events } from '../events.ts'
import { PeriodicService } from '../service.ts'
import { countSchedules, countWork, type Census, type ScheduleCount } from '../store/census.ts'
import type { Db } from '../store/database.ts'

/** Counting schedules takes at most this share of the time: the more there are, the more seldom they are counted. */
const COUNTING_SHARE = 1 / 200

/** Counts for the metrics, at its own pace: a scrape must never cost a scan. */
export class CensusTaker extends PeriodicService<Census> {
  override readonly name = 'census'
  readonly #deps: { readonly db: Db; readonly clock: Clock; readonly events: Events }
  #schedules: readonly ScheduleCount[] = []
  #countAgainAtMs = -Infinity
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
    this.#latest = { ...(await countWork(db, { now: clock.databaseNow() })), schedules: this.#schedules }
    if (clock.monotonicMs() >= this.#countAgainAtMs) {
      await this.#countSchedules()
      this.#latest = { ...this.#latest, schedules: this.#schedules }
    }
    return this.#latest
  }

  /** Also one that fails takes its time, and is not made again before its turn. */
  async #countSchedules(): Promise<void> {
    const { db, clock } = this.#deps
    const startedAtMs = clock.monotonicMs()
    try {
      this.#schedules = await countSchedules(db)
    } finally {
      this.#countAgainAtMs = startedAtMs + (clock.monotonicMs() - startedAtMs) / COUNTING_SHARE
    }
  }
}
