import { BacklogPortions } from '../backlog-portions.ts'
import type { DueSlotSource } from '../backlog-slots.ts'
import type { Clock } from '../clock.ts'
import type { Events } from '../events.ts'
import { PeriodicService } from '../service.ts'
import { transact, type Db } from '../store/database.ts'

export interface BacklogWriterDeps {
  readonly db: Db
  readonly clock: Clock
  readonly events: Events
  readonly source: DueSlotSource
}

export interface BacklogWriterOptions {
  /** @default a second */
  readonly periodMs?: number
  /** For how long the ledger remembers. */
  readonly retentionMs: number
}

export interface BacklogCounts {
  /** Lines that were written. */
  readonly lines: number
}

const PERIOD_DEFAULT_MS = 1000
/** Per turn. The writer rests for a period after them, which leaves Postgres to the pipeline. */
const PORTIONS_MAX = 10

/**
 * Writes the backlogs that a server left: lines of slots that came due before their schedule was paused, edited or deleted. A server
 * leaves some if an outage made too many for it to write, or if it dies right after the change. Without backlogs a turn is one query.
 */
export class BacklogWriter extends PeriodicService<BacklogCounts> {
  override readonly name = 'backlog writer'
  readonly #portions: BacklogPortions

  constructor(deps: BacklogWriterDeps, { periodMs = PERIOD_DEFAULT_MS, retentionMs }: BacklogWriterOptions) {
    super(deps, periodMs)
    const { db, clock, source } = deps
    this.#portions = new BacklogPortions(
      { clock, source, retentionMs, read: (work) => work(db), transact: (work) => transact(db, clock, work) },
      null,
    )
  }

  async runOnce(): Promise<BacklogCounts> {
    return { lines: await this.#portions.write((portions) => portions >= PORTIONS_MAX) }
  }
}
