import { z } from 'zod'

import { deleteAudits } from '../store/audits.ts'
import { deleteFeedEntries, FEED_KEPT_MS } from '../store/feed.ts'
import { ANSWERS_KEPT_MS, deleteAnswers } from '../store/idempotent-answers.ts'
import { readNow } from '../store/now.ts'
import { findOldestDue } from '../store/oldest-due.ts'
import { dropPartitions, ensurePartitions, listPartitions } from '../store/partitions.ts'
import { purgeSchedules } from '../store/purged-schedules.ts'
import type { ClaimedTurn } from '../store/service-turns.ts'
import { TurnService, type Slice, type TurnServiceDeps } from './turn-service.ts'

export type UpkeepDeps = TurnServiceDeps

export interface UpkeepOptions {
  /** From the end of one round to the next. @default an hour */
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

const HOUR_MS = 3_600_000
const DAY_MS = 24 * HOUR_MS
const RETENTION_DEFAULT_MS = 90 * DAY_MS
const MONTHS_AHEAD_DEFAULT = 2
/** The longest spread: a slot may come due so much later than it is named. */
const SPREAD_MAX_MS = HOUR_MS
/** How often a worker looks whether it is its turn. */
const LOOK_MS = 60_000
/** After a round in which a step failed, for instance because somebody read a month that was to be dropped. */
const POSTPONED_MS = 60_000
/** After a failure outside of the steps, such as a connection that broke. */
const PAUSE_AFTER_FAILURE_MS = 1000
const PAUSE_MAX_MS = 60_000
/** How much one statement removes, so that none takes long. */
const ROWS_PER_STATEMENT = 10_000
const SCHEDULES_PER_STATEMENT = 500
/** Between two slices of a round that has more to remove; longer if a slice takes longer, so that half the time is left to others. */
const PAUSE_BETWEEN_SLICES_MS = 100

/** What a round consists of, in this order: what the pipeline cannot do without first; schedules once their months are gone. */
const STEPS = ['months', 'feed', 'answers', 'audits', 'drop', 'schedules'] as const

type Step = (typeof STEPS)[number]

/** Where a round goes on, and whether one of its steps failed. What another version left is begun anew. */
const CURSOR = z.object({ step: z.enum(STEPS), isPostponed: z.boolean() }).catch({ step: STEPS[0], isPostponed: false })

/** What a step did. */
interface StepResult {
  readonly counts: Partial<UpkeepCounts>
  /** There is more to remove. @default false */
  readonly hasMore?: boolean
  /** What it could not do. */
  readonly failure?: Error
}

/** As of which instant a round is made. */
interface Round {
  readonly now: number
  readonly forgetBefore: Date
}

/**
 * Makes the ledger's months before they are needed and drops them after the retention, and with them what was deleted as long ago;
 * forgets what is kept for hours only. One worker at a time does it, in slices: a step that removed as much as one statement may is
 * gone on with in the next slice.
 *
 * `ensureMonths` must have run before the first slot is begun: a slot without a month cannot have its line. Everything else can wait.
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
      periodMs: options.periodMs ?? HOUR_MS,
      retentionMs: options.retentionMs ?? RETENTION_DEFAULT_MS,
      monthsAhead: options.monthsAhead ?? MONTHS_AHEAD_DEFAULT,
    }
  }

  /** Makes the months that the pipeline cannot do without. */
  async ensureMonths(): Promise<string[]> {
    return this.#ensureMonths(this.#roundAt(await readNow(this.#deps.db, this.#deps.clock.databaseNow())))
  }

  /**
   * Makes months, whatever the cursor says: the pipeline cannot do without them. Then works from the cursor's step to the end of the
   * round, or to the first step that has more to remove. A step that fails does not keep the others from being done.
   */
  protected override async slice({ now, cursor }: ClaimedTurn): Promise<Slice<UpkeepCounts>> {
    const { clock } = this.#deps
    const startedAtMs = clock.monotonicMs()
    const round = this.#roundAt(now)
    const counts = { created: 0, dropped: 0, purged: 0, forgotten: 0 }
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
    const restMs = isPostponed || failures.length > 0 ? POSTPONED_MS : this.#options.periodMs
    return { counts, cursor: null, restMs, failure: asOne(failures) }
  }

  #roundAt(now: number): Round {
    return { now, forgetBefore: new Date(now - this.#options.retentionMs) }
  }

  async #try(step: Step, round: Round): Promise<StepResult> {
    try {
      return await this.#do(step, round)
    } catch (error) {
      return { counts: {}, failure: error instanceof Error ? error : new Error(String(error)) }
    }
  }

  async #do(step: Step, { now, forgetBefore }: Round): Promise<StepResult> {
    const { db } = this.#deps
    switch (step) {
      case 'months':
        return { counts: { created: (await this.#ensureMonths({ now, forgetBefore })).length } }
      case 'feed':
        return removed('forgotten', ROWS_PER_STATEMENT, (limit) =>
          deleteFeedEntries(db, { before: new Date(now - FEED_KEPT_MS), limit }),
        )
      case 'answers':
        return removed('forgotten', ROWS_PER_STATEMENT, (limit) =>
          deleteAnswers(db, { before: new Date(now - ANSWERS_KEPT_MS), limit }),
        )
      case 'audits':
        return removed('purged', ROWS_PER_STATEMENT, (limit) => deleteAudits(db, { before: forgetBefore, limit }))
      case 'schedules':
        return removed('purged', SCHEDULES_PER_STATEMENT, (limit) => this.#purgeSchedules(forgetBefore, limit))
      case 'drop':
        // A month with an open run stays until a later round. One that somebody reads is a failure, and tried again soon.
        return { counts: { dropped: (await dropPartitions(db, { before: forgetBefore })).length } }
    }
  }

  /** From the oldest slot that is still awaited: after an outage, begin writes lines for all that was missed (I6). */
  async #ensureMonths({ now, forgetBefore }: Round): Promise<string[]> {
    const oldestDue = (await findOldestDue(this.#deps.db)) ?? Infinity
    const from = new Date(Math.max(Math.min(now, oldestDue - SPREAD_MAX_MS), forgetBefore.getTime()))
    return ensurePartitions(this.#deps.db, { from, to: monthsAfter(now, this.#options.monthsAhead) })
  }

  /** A schedule stays as long as the oldest month that may hold lines of it: no line outlives what it points at. */
  async #purgeSchedules(forgetBefore: Date, limit: number): Promise<number> {
    const { db } = this.#deps
    const [oldest] = await listPartitions(db)
    const deletedBefore = oldest !== undefined && oldest.from < forgetBefore ? oldest.from : forgetBefore
    return purgeSchedules(db, { deletedBefore, limit })
  }
}

const COUNT_NAMES = ['created', 'dropped', 'purged', 'forgotten'] as const satisfies readonly (keyof UpkeepCounts)[]

async function removed(
  name: keyof UpkeepCounts,
  limit: number,
  remove: (limit: number) => Promise<number>,
): Promise<StepResult> {
  const rows = await remove(limit)
  return { counts: { [name]: rows }, hasMore: rows >= limit }
}

/** Says what each step said: a worker reports one error per service. */
function asOne(failures: readonly Error[]): Error | undefined {
  if (failures.length < 2) return failures[0]
  return new AggregateError(failures, failures.map(({ message }) => message).join('; '))
}

/** The first instant of a month. */
function monthsAfter(now: number, months: number): Date {
  const date = new Date(now)
  return new Date(Date.UTC(date.getUTCFullYear(), date.getUTCMonth() + months))
}
