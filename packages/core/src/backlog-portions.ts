import { linesOf, stepsOf, type DueSlotSource } from './backlog-slots.ts'
import type { Clock } from './clock.ts'
import { insertRuns } from './store/begin.ts'
import type { Db, Tx } from './store/database.ts'
import { ensureMonthsOf, MissingMonthError } from './store/missing-month.ts'
import type { NewRun } from './store/new-run.ts'
import { readNow } from './store/now.ts'
import { lockFreeSchedules } from './store/schedule-lock.ts'
import {
  listBacklogs,
  moveBacklogs,
  type BacklogKey,
  type BacklogMove,
  type SlotBacklog,
} from './store/slot-backlogs.ts'
import { isConnectionInDoubt } from './store/sqlstate.ts'

export interface BacklogDeps {
  readonly clock: Clock
  readonly source: DueSlotSource
  /** For how long the ledger remembers. */
  readonly retentionMs: number
  /** Runs reads that need no common snapshot. */
  readonly read: <Result>(work: (db: Db | Tx) => Promise<Result>) => Promise<Result>
  readonly transact: <Result>(work: (tx: Tx) => Promise<Result>) => Promise<Result>
}

/** What becomes of one backlog in a portion. */
interface PlannedMove extends BacklogMove {
  readonly runs: readonly NewRun[]
}

/** How many lines one transaction writes at most. Its schedules are locked for the 50 to 100 ms that it takes. */
export const LINES_PER_PORTION = 1000
const BACKLOGS_PER_PAGE = 100
/** After which a portion takes no further backlog, so that cadences that are slow to compute do not delay the others. */
const PLANNING_MS = 200
/** How long slots are computed before the event loop gets a turn. */
const TURN_MS = 10

/**
 * Writes the lines of backlogs (I6), one portion per transaction. Each backlog gets one portion per round, so a short backlog does
 * not wait for a long one. Several writers share the work: each locks the schedules it writes for, and skips a backlog that another
 * writer has locked or moved.
 */
export class BacklogPortions {
  readonly #deps: BacklogDeps
  /** Null: all of them. */
  readonly #scheduleIds: readonly string[] | null
  #page: readonly SlotBacklog[] = []
  #after: BacklogKey | null = null
  #isLastPage = false
  #now = 0
  #turnEndsMs = 0

  constructor(deps: BacklogDeps, scheduleIds: readonly string[] | null) {
    this.#deps = deps
    this.#scheduleIds = scheduleIds
  }

  /**
   * Writes portions until nothing is left, `isOver` says so, or other writers hold all that is left.
   * @returns how many lines were written
   */
  async write(isOver: (portions: number) => boolean): Promise<number> {
    let lines = 0
    // A call that starts in the middle of the list goes through it once more, for the backlogs before that.
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

  /** Undefined at the end of the list; the next call starts at its beginning. */
  async #writeNext(): Promise<{ readonly lines: number; readonly hasMoved: boolean } | undefined> {
    if (this.#page.length === 0 && !(await this.#readPage())) return undefined
    const moves = await this.#plan()
    // The cursor moves before the write: if a backlog fails, the next call goes on with the others.
    this.#after = moves.at(-1)?.backlog ?? null
    this.#page = this.#page.slice(moves.length)
    const made = await this.#writeApart(moves)
    return { lines: countRuns(made), hasMoved: made.length > 0 }
  }

  /** False at the end of the list. */
  async #readPage(): Promise<boolean> {
    const { read, clock } = this.#deps
    if (!this.#isLastPage) {
      const query = { scheduleIds: this.#scheduleIds, after: this.#after, limit: BACKLOGS_PER_PAGE }
      this.#page = await read((db) => listBacklogs(db, query))
      this.#isLastPage = this.#page.length < BACKLOGS_PER_PAGE
      if (this.#page.length > 0) {
        this.#now = await read((db) => readNow(db, clock.databaseNow()))
        return true
      }
    }
    this.#after = null
    this.#isLastPage = false
    return false
  }

  /** Computes the next portion of lines. No transaction is open meanwhile, so no lock waits for it. */
  async #plan(): Promise<PlannedMove[]> {
    const moves: PlannedMove[] = []
    const endsMs = this.#deps.clock.monotonicMs() + PLANNING_MS
    let room = LINES_PER_PORTION
    for (const backlog of this.#page) {
      if (room === 0 || (moves.length > 0 && this.#deps.clock.monotonicMs() >= endsMs)) break
      const move = await this.#planOf(backlog, room)
      room -= move.runs.length
      moves.push(move)
    }
    return moves
  }

  async #planOf(backlog: SlotBacklog, limit: number): Promise<PlannedMove> {
    const { source, retentionMs } = this.#deps
    const options = { source, cadence: backlog.cadence, ledgerFrom: this.#now - retentionMs, limit }
    const due: number[] = []
    let next: number | null = null
    for (const step of stepsOf(backlog, options)) {
      due.push(...step.due)
      next = step.next
      await this.#takeTurns()
    }
    return { backlog, next, runs: linesOf(backlog, due, this.#now) }
  }

  /**
   * Writes a portion. If that fails, one backlog at a time: portions are put together the same way in each round, so the others
   * in this one would never be written.
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

  /** Upkeep makes the months of the ledger, but it may have failed, or no worker may have started yet. */
  async #writeWithMonths(moves: readonly PlannedMove[]): Promise<readonly PlannedMove[]> {
    const { transact } = this.#deps
    const attempt = (): Promise<readonly PlannedMove[]> => transact((tx) => this.#write(tx, moves))
    try {
      return await attempt()
    } catch (error) {
      if (!(error instanceof MissingMonthError)) throw error
      await transact((tx) => ensureMonthsOf(tx, error.slots))
      return attempt()
    }
  }

  /**
   * Every line is written under the lock of its schedule. A purge takes the same lock: either it finds the lines of this portion,
   * or this portion finds no backlog.
   */
  async #write(tx: Tx, moves: readonly PlannedMove[]): Promise<readonly PlannedMove[]> {
    const free = await lockFreeSchedules(tx, { scheduleIds: moves.map(({ backlog }) => backlog.scheduleId) })
    const made = await moveBacklogs(tx, { moves: moves.filter(({ backlog }) => free.has(backlog.scheduleId)) })
    const runs = made.flatMap((move) => move.runs)
    if (runs.length > 0) {
      await insertRuns(tx, { runs, workerId: null, onConflict: 'keep', now: this.#deps.clock.databaseNow() })
    }
    return made
  }

  async #takeTurns(): Promise<void> {
    const { clock } = this.#deps
    if (clock.monotonicMs() < this.#turnEndsMs) return
    await clock.sleep(0)
    this.#turnEndsMs = clock.monotonicMs() + TURN_MS
  }
}

function countRuns(moves: readonly PlannedMove[]): number {
  return moves.reduce((sum, { runs }) => sum + runs.length, 0)
}
