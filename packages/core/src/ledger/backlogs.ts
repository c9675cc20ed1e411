import type { RunReason } from '@carillon/api'

import { type Db, type Tx } from '../db/database.ts'
import { lockFreeSchedules } from '../db/locks.ts'
import type { NewLine } from '../db/new-lines.ts'
import { readTransactionTime } from '../db/now.ts'
import { isConnectionInDoubt } from '../db/sqlstate.ts'
import { transact } from '../db/transact.ts'
import type { Clock } from '../kernel/clock.ts'
import { EventLoopYield } from '../kernel/event-loop-yield.ts'
import type { Events } from '../kernel/events.ts'
import { PeriodicService } from '../kernel/service.ts'
import { linesOf, stepsOf, type BacklogCadences } from './backlog-slots.ts'
import { insertLines, withMonths } from './lines.ts'
import {
  listBacklogs,
  moveBacklogs,
  type BacklogKey,
  type BacklogProgress,
  type NewBacklog,
  type SlotBacklog,
} from './store/backlogs.ts'

export { ageOfOldestBacklog, insertBacklogs, type NewBacklog } from './store/backlogs.ts'

export interface BacklogDeps {
  readonly clock: Clock
  readonly cadences: BacklogCadences
  /** For how long the ledger keeps lines. */
  readonly retentionMs: number
  /** Runs reads that need no common snapshot. */
  readonly read: <Result>(work: (db: Db | Tx) => Promise<Result>) => Promise<Result>
  readonly transact: <Result>(work: (tx: Tx) => Promise<Result>) => Promise<Result>
}

/** How far a portion moves one backlog, and the lines it inserts for it. */
interface PlannedMove extends BacklogProgress {
  readonly lines: readonly NewLine[]
}

/** How many lines one transaction writes at most. It holds the locks of its schedules for the 50 to 100 ms that this takes. */
export const LINES_PER_PORTION = 1000
/** How many backlogs one query reads at most. */
const BACKLOGS_PER_PAGE = 100
/** After this long a portion takes no further backlog, so that cadences that are slow to compute do not delay the others. */
const PLANNING_MS = 200

/**
 * Writes the lines of backlogs (I6), one portion per transaction. Each backlog gets one portion per round, so a short backlog does
 * not wait for a long one. Several writers share the work: each locks the schedules it writes for, and skips a backlog that another
 * writer has locked or moved.
 */
export class BacklogPortions {
  readonly #deps: BacklogDeps
  /** The schedules whose backlogs are written; null: all schedules. */
  readonly #scheduleIds: readonly string[] | null
  #page: readonly SlotBacklog[] = []
  #after: BacklogKey | null = null
  #isLastPage = false
  #now = 0
  readonly #yield: EventLoopYield

  constructor(deps: BacklogDeps, scheduleIds: readonly string[] | null) {
    this.#deps = deps
    this.#scheduleIds = scheduleIds
    this.#yield = new EventLoopYield(deps.clock)
  }

  /**
   * Writes portions until nothing is left, `isOver` says so, or other writers hold all that is left.
   * @returns how many lines were written
   */
  async write(isOver: (portions: number) => boolean): Promise<number> {
    let lines = 0
    // A call that starts in the middle of the list goes through it a second time, for the backlogs before its start.
    let isRoundNeeded = this.#after !== null
    for (let portions = 0; !isOver(portions);) {
      const written = await this.#writeNext()
      if (written !== undefined) {
        portions += 1
        lines += written.lines
        isRoundNeeded ||= written.hasMoved
      } else if (isRoundNeeded) {
        isRoundNeeded = false
      } else {
        break
      }
    }
    return lines
  }

  /** Writes one portion. Returns undefined at the end of the list; the next call starts at the beginning of the list. */
  async #writeNext(): Promise<{ readonly lines: number; readonly hasMoved: boolean } | undefined> {
    if (this.#page.length === 0 && !(await this.#readPage())) return undefined
    const moves = await this.#plan()
    // The cursor moves before the write: if a backlog fails, the next call goes on with the others.
    this.#after = moves.at(-1)?.backlog ?? null
    this.#page = this.#page.slice(moves.length)
    const made = await this.#writeApart(moves)
    return { lines: countLines(made), hasMoved: made.length > 0 }
  }

  /** Reads the next page. Returns false at the end of the list. */
  async #readPage(): Promise<boolean> {
    const { read, clock } = this.#deps
    if (!this.#isLastPage) {
      const query = { scheduleIds: this.#scheduleIds, after: this.#after, limit: BACKLOGS_PER_PAGE }
      this.#page = await read((db) => listBacklogs(db, query))
      this.#isLastPage = this.#page.length < BACKLOGS_PER_PAGE
      if (this.#page.length > 0) {
        this.#now = await read((db) => readTransactionTime(db, clock.databaseNow()))
        return true
      }
    }
    this.#after = null
    this.#isLastPage = false
    return false
  }

  /** Computes the next portion of lines. No transaction is open meanwhile, so it holds no lock. */
  async #plan(): Promise<PlannedMove[]> {
    const moves: PlannedMove[] = []
    const endsMs = this.#deps.clock.monotonicMs() + PLANNING_MS
    let room = LINES_PER_PORTION
    for (const backlog of this.#page) {
      if (room === 0 || (moves.length > 0 && this.#deps.clock.monotonicMs() >= endsMs)) break
      const move = await this.#planOf(backlog, room)
      room -= move.lines.length
      moves.push(move)
    }
    return moves
  }

  async #planOf(backlog: SlotBacklog, limit: number): Promise<PlannedMove> {
    const { cadences, retentionMs } = this.#deps
    const options = { cadences, cadence: backlog.cadence, ledgerFrom: this.#now - retentionMs, limit }
    const due: number[] = []
    let next: number | null = null
    for (const step of stepsOf(backlog, options)) {
      due.push(...step.due)
      next = step.next
      await this.#yield.next()
    }
    return { backlog, next, lines: linesOf(backlog, due, this.#now) }
  }

  /**
   * Writes a portion. If that fails, it writes one backlog at a time. Each round puts the same backlogs into one portion, so one backlog
   * that fails would keep the others from ever being written.
   * @throws the error of the first backlog that failed, once the others are written
   */
  async #writeApart(moves: readonly PlannedMove[]): Promise<readonly PlannedMove[]> {
    try {
      return await this.#writeWithMonths(moves)
    } catch (error) {
      if (moves.length === 1 || isConnectionInDoubt(error)) throw error
    }
    const made: PlannedMove[] = []
    const errors: unknown[] = []
    for (const move of moves) {
      try {
        made.push(...(await this.#writeWithMonths([move])))
      } catch (error) {
        errors.push(error)
      }
    }
    if (errors.length > 0) throw errors[0]
    return made
  }

  #writeWithMonths(moves: readonly PlannedMove[]): Promise<readonly PlannedMove[]> {
    const { transact } = this.#deps
    return withMonths(() => transact((tx) => this.#write(tx, moves)), transact)
  }

  /**
   * Every line is written under the lock of its schedule. A purge takes the same lock: either it finds the lines of this portion,
   * or this portion finds no backlog.
   */
  async #write(tx: Tx, moves: readonly PlannedMove[]): Promise<readonly PlannedMove[]> {
    const free = await lockFreeSchedules(tx, { scheduleIds: moves.map(({ backlog }) => backlog.scheduleId) })
    const made = await moveBacklogs(tx, { moves: moves.filter(({ backlog }) => free.has(backlog.scheduleId)) })
    const lines = made.flatMap((move) => move.lines)
    if (lines.length > 0) {
      await insertLines(tx, { lines, workerId: null, onConflict: 'keep', now: this.#deps.clock.databaseNow() })
    }
    return made
  }
}

function countLines(moves: readonly PlannedMove[]): number {
  return moves.reduce((sum, { lines }) => sum + lines.length, 0)
}

/** The part of a schedule that says which of its slots are due. */
export interface DueSchedule {
  readonly id: string
  readonly tenantId: string
  readonly projectId: string
  readonly revision: number
  readonly nextSlotAt: number | null
  readonly dueAt: number | null
  readonly excludedSlots: readonly number[]
}

/** All due slots of a schedule as a backlog; undefined if none is due. */
export function backlogOf(schedule: DueSchedule, reason: RunReason, now: number): NewBacklog | undefined {
  const { id, tenantId, projectId, revision, nextSlotAt, dueAt } = schedule
  if (nextSlotAt === null || dueAt === null || dueAt > now) return undefined
  const until = now - (dueAt - nextSlotAt)
  const excludedSlots = schedule.excludedSlots.filter((slot) => slot >= nextSlotAt && slot <= until)
  return { scheduleId: id, tenantId, projectId, revision, until, nextSlotAt, reason, excludedSlots }
}

export interface BacklogWriterDeps {
  readonly db: Db
  readonly clock: Clock
  readonly events: Events
  readonly cadences: BacklogCadences
}

export interface BacklogWriterOptions {
  /** For how long the ledger keeps lines. */
  readonly retentionMs: number
}

export interface BacklogCounts {
  /** Lines that were written. */
  readonly lines: number
}

const PERIOD_MS = 1000
/** How many portions one call of `runOnce` writes at most. Until the next call, Postgres is free for the pipeline. */
const PORTIONS_MAX = 10

/**
 * Writes the lines of backlogs: of slots that came due before their schedule was paused, edited or deleted. The server that made the
 * change writes them itself, unless an outage made too many, or it dies right after the change. Without backlogs this is one query.
 */
export class BacklogWriter extends PeriodicService<BacklogCounts> {
  override readonly name = 'backlog writer'
  readonly #portions: BacklogPortions

  constructor(deps: BacklogWriterDeps, { retentionMs }: BacklogWriterOptions) {
    super(deps, PERIOD_MS)
    const { db, clock, cadences } = deps
    this.#portions = new BacklogPortions(
      { clock, cadences, retentionMs, read: (work) => work(db), transact: (work) => transact(db, clock, work) },
      null,
    )
  }

  async runOnce(): Promise<BacklogCounts> {
    return { lines: await this.#portions.write((portions) => portions >= PORTIONS_MAX) }
  }
}
