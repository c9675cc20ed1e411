import type { Db, Tx } from '../db/database.ts'
import { ensurePartitions } from '../db/months.ts'
import { linesInsert, type LinesStatement, type NewLine, type NewLines, type NewWait } from '../db/new-lines.ts'
import { SQLSTATE, sqlStateOf } from '../db/sqlstate.ts'
import { identifierAt } from '../kernel/ids.ts'

interface LineOf {
  readonly id: string
  readonly tenantId: string
  readonly projectId: string
  readonly revision: number
}

interface Line extends Pick<NewLine, 'state'> {
  readonly slot: number
  /** @default null */
  readonly waits?: NewWait | null
  /** @default null */
  readonly reason?: string | null
  /** JSON text. @default null */
  readonly error?: string | null
  /** @default 'schedule' */
  readonly trigger?: NewLine['trigger']
}

/** The line of a slot, with a new id. */
export function newLine(schedule: LineOf, line: Line, now: number): NewLine {
  const { slot, state, waits = null, reason = null, error = null, trigger = 'schedule' } = line
  return {
    id: identifierAt(now),
    scheduleId: schedule.id,
    tenantId: schedule.tenantId,
    projectId: schedule.projectId,
    revision: schedule.revision,
    scheduledFor: slot,
    trigger,
    state,
    waits,
    reason,
    error,
  }
}

/**
 * Inserts lines of the ledger: runs that start now under this worker's lease, runs that wait, and slots that do not run. If a slot has
 * a line already, the primary key makes the transaction fail (I2), unless `onConflict` is `'keep'`: then that line stays. `'keep'` is
 * for callers that need it, because it writes more WAL.
 * @returns the ids of the inserted lines
 * @throws MissingMonthError if the ledger has no month for a slot
 */
export async function insertLines(tx: Tx, p: NewLines): Promise<Set<string>> {
  return writeLines(tx, p, linesInsert(p))
}

/** Executes a statement that inserts lines. */
export async function writeLines(tx: Tx, { lines }: NewLines, statement: LinesStatement): Promise<Set<string>> {
  const rows = await namingMissingMonths(lines, () => statement.execute(tx))
  return new Set(rows.map(({ id }) => id))
}

/** A row that is stored in the month of its slot: a line, or a part of a transcript. */
type LedgerRow = Pick<NewLine, 'scheduledFor'>

/** The ledger lacks the partition of a month. `withMonths` creates it, and repeats the transaction. */
class MissingMonthError extends Error {
  override readonly name = 'MissingMonthError'
  /** One slot of each month that the lines need. */
  readonly slots: readonly number[]

  constructor(lines: readonly LedgerRow[], cause: unknown) {
    super('the ledger has no partition for the month of a slot', { cause })
    const byMonth = new Map(lines.map(({ scheduledFor }) => [monthOf(scheduledFor), scheduledFor]))
    this.slots = [...byMonth.values()]
  }
}

/** Throws MissingMonthError if the write failed because a month is missing. */
export async function namingMissingMonths<Result>(
  lines: readonly LedgerRow[],
  write: () => Promise<Result>,
): Promise<Result> {
  try {
    return await write()
  } catch (error) {
    throw isMissingPartition(error) ? new MissingMonthError(lines, error) : error
  }
}

/**
 * Runs a transaction that may write lines. If the ledger lacks a month, this creates it and runs the transaction once more. Upkeep creates
 * months in advance, but it may have failed, no worker may have started yet, or a slot may be years late. A transaction writes its lines
 * with one statement, so the error names every month that is missing.
 * @param transact opens another transaction: the one that failed held locks that others wait for
 */
export async function withMonths<Result>(
  attempt: () => Promise<Result>,
  transact: (work: (db: Db | Tx) => Promise<void>) => Promise<void>,
): Promise<Result> {
  try {
    return await attempt()
  } catch (error) {
    if (!(error instanceof MissingMonthError)) throw error
    await transact((db) => ensureMonthsOf(db, error.slots))
    return attempt()
  }
}

/** Creates the month of each slot, not the months in between: one slot may be years late. */
async function ensureMonthsOf(db: Db | Tx, slots: readonly number[]): Promise<void> {
  for (const slot of slots) await ensurePartitions(db, { from: new Date(slot), to: new Date(slot) })
}

/** A missing partition is a check violation without a constraint name. The message is no help: Postgres may write it in any language. */
function isMissingPartition(error: unknown): boolean {
  if (sqlStateOf(error) !== SQLSTATE.checkViolation) return false
  return (error as { readonly constraint?: string }).constraint === undefined
}

function monthOf(slot: number): string {
  return new Date(slot).toISOString().slice(0, 7)
}
