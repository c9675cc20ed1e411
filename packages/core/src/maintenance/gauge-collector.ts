import type { Db } from '../db/database.ts'
import { transact } from '../db/transact.ts'
import type { Clock } from '../kernel/clock.ts'
import type { Events } from '../kernel/events.ts'
import { PeriodicService } from '../kernel/service.ts'
import { countSchedules, countWork, type Gauges, type ScheduleCount } from './store/gauges.ts'

/** Counting schedules takes at most this share of the time: the longer a count takes, the less often it is made. */
const COUNTING_SHARE = 1 / 200

export interface GaugeCollectorDeps {
  readonly db: Db
  readonly clock: Clock
  readonly events: Events
}

/** Counts schedules and runs for the gauges, at its own pace: a scrape of the metrics must not cost a table scan. */
export class GaugeCollector extends PeriodicService<Gauges> {
  override readonly name = 'gauges'
  readonly #deps: GaugeCollectorDeps
  #schedules: readonly ScheduleCount[] = []
  #countAgainAtMs = -Infinity
  #latest: Gauges | undefined

  constructor(deps: GaugeCollectorDeps, options: { readonly periodMs: number }) {
    super(deps, options.periodMs)
    this.#deps = deps
  }

  get latest(): Gauges | undefined {
    return this.#latest
  }

  async runOnce(): Promise<Gauges> {
    const { db, clock } = this.#deps
    this.#latest = { ...(await countWork(db, { now: clock.databaseNow() })), schedules: this.#schedules }
    if (clock.monotonicMs() >= this.#countAgainAtMs) {
      await this.#countSchedules()
      this.#latest = { ...this.#latest, schedules: this.#schedules }
    }
    return this.#latest
  }

  /** A count that fails delays the next one as much as a count that succeeds. */
  async #countSchedules(): Promise<void> {
    const { db, clock } = this.#deps
    const startedAtMs = clock.monotonicMs()
    try {
      this.#schedules = await transact(db, clock, countSchedules)
    } finally {
      this.#countAgainAtMs = startedAtMs + (clock.monotonicMs() - startedAtMs) / COUNTING_SHARE
    }
  }
}
