import type { Clock } from '../clock.ts'
import type { Events } from '../events.ts'
import { Service } from '../service.ts'
import { deleteAudits } from '../store/audits.ts'
import type { Db } from '../store/database.ts'
import { deleteFeedEntries, FEED_KEPT_MS } from '../store/feed.ts'
import { ANSWERS_KEPT_MS, deleteAnswers } from '../store/idempotent-answers.ts'
import { readNow } from '../store/now.ts'
import { findOldestNextSlot } from '../store/oldest-slot.ts'
import { dropPartitions, ensurePartitions, listPartitions } from '../store/partitions.ts'
import { purgeSchedules } from '../store/purged-schedules.ts'

export interface UpkeepDeps {
  readonly db: Db
  readonly clock: Clock
  readonly events: Events
}

export interface UpkeepOptions {
  /** @default a day */
  readonly periodMs?: number
  /** For how long the ledger remembers; whole months are dropped, so some lines stay for up to a month more. @default 90 days */
  readonly retentionMs?: number
  /** Months made ahead of the present one: for as long the ledger goes on though upkeep fails. @default 2 */
  readonly monthsAhead?: number
}

export interface UpkeepCounts {
  /** Partitions that were made. */
  readonly created: number
  /** Partitions that were dropped. */
  readonly dropped: number
  /** Schedules and audits that were removed for good. */
  readonly purged: number
  /** Entries of the feed, and answers to creates, that were kept for long enough. */
  readonly forgotten: number
}

const DAY_MS = 86_400_000
const RETENTION_DEFAULT_MS = 90 * DAY_MS
const MONTHS_AHEAD_DEFAULT = 2
/** Dropping a month gives up soon if somebody reads: then it is tried again after this. */
const PAUSE_AFTER_FAILURE_MS = 60_000
const SCHEDULES_PER_PURGE = 500
/** For how long a create with an Idempotency-Key is answered as it was the first time. */
const FORGOTTEN_AT_ONCE = 10_000

/**
 * Makes the ledger's months before they are needed and drops them after the retention, and with them what was deleted as
 * long ago; forgets what is kept for hours only. Must have run once before the first slot is begun: a slot without a month
 * cannot have its line.
 */
export class Upkeep extends Service<UpkeepCounts> {
  override readonly name = 'upkeep'
  readonly #deps: UpkeepDeps
  readonly #options: Required<UpkeepOptions>

  constructor(deps: UpkeepDeps, options: UpkeepOptions = {}) {
    super(deps, PAUSE_AFTER_FAILURE_MS)
    this.#deps = deps
    this.#options = {
      periodMs: options.periodMs ?? DAY_MS,
      retentionMs: options.retentionMs ?? RETENTION_DEFAULT_MS,
      monthsAhead: options.monthsAhead ?? MONTHS_AHEAD_DEFAULT,
    }
  }

  /** In this order: what the pipeline cannot do without comes first, what may fail for a reader's sake later. */
  async runOnce(): Promise<UpkeepCounts> {
    const { db, clock } = this.#deps
    const now = await readNow(db, clock.databaseNow())
    const forgetBefore = new Date(now - this.#options.retentionMs)
    const created = await this.#ensureMonths(now, forgetBefore)
    const forgotten = await this.#forget(now)
    const dropped = await dropPartitions(db, { before: forgetBefore })
    const purged = (await this.#purgeSchedules(forgetBefore)) + (await deleteAudits(db, { before: forgetBefore }))
    return { created: created.length, dropped: dropped.length, purged, forgotten }
  }

  protected override rest(_counts: UpkeepCounts, signal: AbortSignal): Promise<void> {
    return this.#deps.clock.sleep(this.#options.periodMs, signal)
  }

  /** From the oldest slot that is still awaited: after an outage, begin writes lines for all that was missed (I6). */
  async #ensureMonths(now: number, forgetBefore: Date): Promise<string[]> {
    const oldest = (await findOldestNextSlot(this.#deps.db)) ?? now
    const from = new Date(Math.max(Math.min(oldest, now), forgetBefore.getTime()))
    return ensurePartitions(this.#deps.db, { from, to: monthsAfter(now, this.#options.monthsAhead) })
  }

  /** A schedule stays as long as the oldest month that may hold lines of it: no line outlives what it points at. */
  async #purgeSchedules(forgetBefore: Date): Promise<number> {
    const { db } = this.#deps
    const [oldest] = await listPartitions(db)
    const deletedBefore = oldest !== undefined && oldest.from < forgetBefore ? oldest.from : forgetBefore
    return untilFewer(SCHEDULES_PER_PURGE, (limit) => purgeSchedules(db, { deletedBefore, limit }))
  }

  async #forget(now: number): Promise<number> {
    const { db } = this.#deps
    const [feedBefore, answersBefore] = [new Date(now - FEED_KEPT_MS), new Date(now - ANSWERS_KEPT_MS)]
    const entries = await untilFewer(FORGOTTEN_AT_ONCE, (limit) => deleteFeedEntries(db, { before: feedBefore, limit }))
    const answers = await untilFewer(FORGOTTEN_AT_ONCE, (limit) => deleteAnswers(db, { before: answersBefore, limit }))
    return entries + answers
  }
}

/** Removes in portions, so that no statement takes long; returns how many in all. */
async function untilFewer(limit: number, remove: (limit: number) => Promise<number>): Promise<number> {
  for (let total = 0; ;) {
    const removed = await remove(limit)
    total += removed
    if (removed < limit) return total
  }
}

/** The first instant of a month. */
function monthsAfter(now: number, months: number): Date {
  const date = new Date(now)
  return new Date(Date.UTC(date.getUTCFullYear(), date.getUTCMonth() + months))
}
