import { SPREAD_SECONDS } from '@carillon/api'
import { z } from 'zod'

import { deleteAudits } from '../audit/audits.ts'
import { dropPartitions, ensurePartitions, listPartitions } from '../db/months.ts'
import { readTransactionTime } from '../db/now.ts'
import { transact } from '../db/transact.ts'
import { deleteEventLogEntries, EVENT_LOG_KEPT_MS } from '../event-log/event-log.ts'
import { type ClaimedTurn, type Slice, TurnService, type TurnServiceDeps } from '../jobs/turn-service.ts'
import { checkedRetentionMs } from '../policy/retention-days.ts'
import { ANSWERS_KEPT_MS, deleteAnswers } from '../schedules/create-once.ts'
import {
  deleteBacklogsOf,
  deleteChangesOf,
  deleteOwnGrantsOf,
  deleteRevisionsOf,
  deleteRunChanges,
  deleteSchedules,
  findOldestDue,
  lockExpiredSchedules,
} from './store/upkeep.ts'

export type UpkeepDeps = TurnServiceDeps

export interface UpkeepOptions {
  /**
   * For how long the ledger keeps lines. Whole months are dropped, so some lines stay up to a month longer.
   * @default `checkedRetentionMs()`
   */
  readonly retentionMs?: number
  /** How many months are created ahead: the ledger works for that long if upkeep fails. @default `MONTHS_AHEAD_DEFAULT` */
  readonly monthsAhead?: number
}

export interface UpkeepCounts {
  /** Partitions that were created. */
  readonly created: number
  /** Partitions that were dropped. */
  readonly dropped: number
  /** Schedules and audits that were deleted. */
  readonly purged: number
  /** Entries of the event log, stored answers to creates, and lines of runs in the histories of schedules that were deleted. */
  readonly deletedEntries: number
}

const MONTHS_AHEAD_DEFAULT = 2
/** Time from the end of one round to the start of the next. */
const ROUND_EVERY_MS = 3_600_000
/** A slot comes due at most that much after its instant. */
const SPREAD_MAX_MS = SPREAD_SECONDS.max * 1000
/** How often a worker tries to claim the turn. */
const LOOK_MS = 60_000
/** Time until the next round if a step failed, for example because a query was reading a month that was to be dropped. */
const POSTPONED_MS = 60_000
/** The first pause after a failure outside of the steps, such as a lost connection. It doubles up to PAUSE_MAX_MS. */
const PAUSE_AFTER_FAILURE_MS = 1000
const PAUSE_MAX_MS = 60_000
/** How many rows one slice deletes of one kind, so that no statement takes long. */
const ROWS_PER_SLICE = 10_000
const SCHEDULES_PER_SLICE = 500
/**
 * The shortest pause between two slices of a round that has more to delete. After a longer slice the pause is as long as the slice, so that
 * upkeep works at most half of the time.
 */
const PAUSE_BETWEEN_SLICES_MS = 100

/**
 * The steps of a round in order. Months come first, because the pipeline needs them. After a month is dropped, the lines in histories that
 * name its runs are deleted, then the schedules that were deleted before its end.
 */
const STEPS = ['months', 'event_log', 'answers', 'audits', 'drop', 'run_changes', 'schedules'] as const

type Step = (typeof STEPS)[number]

/** Where a round continues, and whether one of its steps failed. A cursor of another version starts a new round. */
const CURSOR = z.object({ step: z.enum(STEPS), isPostponed: z.boolean() }).catch({ step: STEPS[0], isPostponed: false })

/** The result of a step. */
interface StepResult {
  readonly counts: Partial<UpkeepCounts>
  /** True if there is more to delete. @default false */
  readonly hasMore?: boolean
  /** The error of a step that failed. */
  readonly failure?: Error
}

interface Round {
  readonly now: number
  /** The end of the retention: older rows are deleted. */
  readonly deleteBefore: Date
}

/**
 * Creates the monthly partitions of the ledger before they are needed, and drops them after the retention, with the schedules that were
 * deleted before that and the lines of runs in the histories of the others. Also deletes old entries of the event log, stored answers to
 * creates, and audits. Runs on one worker at a time, in slices: a step that deleted its maximum of rows continues in the next slice.
 *
 * `ensureMonths` must have run before the first slot begins: without a partition the slot's line cannot be inserted. The rest can wait.
 */
export class Upkeep extends TurnService<UpkeepCounts> {
  override readonly name = 'upkeep'
  readonly #deps: UpkeepDeps
  readonly #options: Required<UpkeepOptions>

  constructor(deps: UpkeepDeps, options: UpkeepOptions = {}) {
    super(deps, {
      turn: 'upkeep',
      lookMs: LOOK_MS,
      pauseAfterFailureMs: PAUSE_AFTER_FAILURE_MS,
      pauseMaxMs: PAUSE_MAX_MS,
    })
    this.#deps = deps
    this.#options = {
      retentionMs: options.retentionMs ?? checkedRetentionMs(),
      monthsAhead: options.monthsAhead ?? MONTHS_AHEAD_DEFAULT,
    }
  }

  /** Creates the months that the pipeline needs. */
  async ensureMonths(): Promise<string[]> {
    return this.#ensureMonths(this.#roundAt(await readTransactionTime(this.#deps.db, this.#deps.clock.databaseNow())))
  }

  /**
   * Creates months first, whatever the cursor says. Then works from the cursor's step to the end of the round, or to the first step
   * that has more to delete. If a step fails, the others are still done.
   */
  protected override async slice({ now, cursor }: ClaimedTurn): Promise<Slice<UpkeepCounts>> {
    const { clock } = this.#deps
    const startedAtMs = clock.monotonicMs()
    const round = this.#roundAt(now)
    const counts = { created: 0, dropped: 0, purged: 0, deletedEntries: 0 }
    const { step: first, isPostponed } = CURSOR.parse(cursor)
    const failures: Error[] = []
    for (const step of new Set<Step>(['months', ...STEPS.slice(STEPS.indexOf(first))])) {
      const done = await this.#try(step, round)
      for (const name of COUNT_NAMES) counts[name] += done.counts[name] ?? 0
      if (done.failure !== undefined) failures.push(done.failure)
      if (done.hasMore !== true) continue
      const restMs = Math.max(PAUSE_BETWEEN_SLICES_MS, clock.monotonicMs() - startedAtMs)
      const next = { step, isPostponed: isPostponed || failures.length > 0 }
      return { counts, cursor: next, restMs, failure: asOne(failures) }
    }
    const restMs = isPostponed || failures.length > 0 ? POSTPONED_MS : ROUND_EVERY_MS
    return { counts, cursor: null, restMs, failure: asOne(failures) }
  }

  #roundAt(now: number): Round {
    return { now, deleteBefore: new Date(now - this.#options.retentionMs) }
  }

  async #try(step: Step, round: Round): Promise<StepResult> {
    try {
      return await this.#do(step, round)
    } catch (error) {
      return { counts: {}, failure: error instanceof Error ? error : new Error(String(error)) }
    }
  }

  async #do(step: Step, { now, deleteBefore }: Round): Promise<StepResult> {
    const { db } = this.#deps
    switch (step) {
      case 'months':
        return { counts: { created: (await this.#ensureMonths({ now, deleteBefore })).length } }
      case 'event_log':
        return removed('deletedEntries', ROWS_PER_SLICE, (limit) =>
          deleteEventLogEntries(db, { before: new Date(now - EVENT_LOG_KEPT_MS), limit }),
        )
      case 'answers':
        return removed('deletedEntries', ROWS_PER_SLICE, (limit) =>
          deleteAnswers(db, { before: new Date(now - ANSWERS_KEPT_MS), limit }),
        )
      case 'audits':
        return removed('purged', ROWS_PER_SLICE, (limit) => deleteAudits(db, { before: deleteBefore, limit }))
      case 'run_changes':
        return removed('deletedEntries', ROWS_PER_SLICE, async (limit) =>
          deleteRunChanges(db, { before: await this.#ledgerStart(deleteBefore), limit }),
        )
      case 'schedules':
        return this.#purgeSchedules(await this.#ledgerStart(deleteBefore))
      case 'drop':
        // A month with an open run stays until a later round. A month that a query is reading fails the step, which is repeated soon.
        return { counts: { dropped: (await dropPartitions(db, { before: deleteBefore })).length } }
    }
  }

  /** Creates the months from the oldest slot on that has not begun: after an outage, begin inserts lines for all missed slots (I6). */
  async #ensureMonths({ now, deleteBefore }: Round): Promise<string[]> {
    const oldestDue = (await findOldestDue(this.#deps.db)) ?? Infinity
    const from = new Date(Math.max(Math.min(now, oldestDue - SPREAD_MAX_MS), deleteBefore.getTime()))
    return ensurePartitions(this.#deps.db, { from, to: monthsAfter(now, this.#options.monthsAhead) })
  }

  /**
   * The start of the oldest month that the ledger has, or the end of the retention if that is earlier. What belongs to lines stays as long
   * as that month: no line outlives its schedule, nor who requested or cancelled its run.
   */
  async #ledgerStart(deleteBefore: Date): Promise<Date> {
    const [oldest] = await listPartitions(this.#deps.db)
    return oldest !== undefined && oldest.from < deleteBefore ? oldest.from : deleteBefore
  }

  /** Deletes what belongs to the schedules first, and the schedules once nothing is left of it. */
  #purgeSchedules(deletedBefore: Date): Promise<StepResult> {
    const { db, clock } = this.#deps
    return transact(db, clock, async (tx) => {
      const scheduleIds = await lockExpiredSchedules(tx, { deletedBefore, limit: SCHEDULES_PER_SLICE })
      let room = ROWS_PER_SLICE
      for (const remove of [deleteChangesOf, deleteRevisionsOf, deleteBacklogsOf, deleteOwnGrantsOf]) {
        room -= await remove(tx, { scheduleIds, limit: room })
        if (room === 0) return { counts: {}, hasMore: true }
      }
      await deleteSchedules(tx, { scheduleIds })
      return { counts: { purged: scheduleIds.length }, hasMore: scheduleIds.length >= SCHEDULES_PER_SLICE }
    })
  }
}

const COUNT_NAMES = [
  'created',
  'dropped',
  'purged',
  'deletedEntries',
] as const satisfies readonly (keyof UpkeepCounts)[]

async function removed(
  name: keyof UpkeepCounts,
  limit: number,
  remove: (limit: number) => Promise<number>,
): Promise<StepResult> {
  const rows = await remove(limit)
  return { counts: { [name]: rows }, hasMore: rows >= limit }
}

/** Joins the errors of several steps: a worker reports one error per service. */
function asOne(failures: readonly Error[]): Error | undefined {
  if (failures.length < 2) return failures[0]
  return new AggregateError(failures, failures.map(({ message }) => message).join('; '))
}

/** The first instant of the month that is `months` months after the month of `now`. */
function monthsAfter(now: number, months: number): Date {
  const date = new Date(now)
  return new Date(Date.UTC(date.getUTCFullYear(), date.getUTCMonth() + months))
}
