import type { Db, Tx } from './database.ts'
import type { NewRun } from './new-run.ts'
import { ensurePartitions } from './partitions.ts'
import { SQLSTATE, sqlStateOf } from './sqlstate.ts'

/** Lines could not be written, for the ledger has no month for some. Make their months, and do all of it again. */
export class MissingMonthError extends Error {
  override readonly name = 'MissingMonthError'
  /** One slot of each month that was to be written. */
  readonly slots: readonly number[]

  constructor(runs: readonly NewRun[], cause: unknown) {
    super('the ledger has no month for a slot', { cause })
    const byMonth = new Map(runs.map(({ scheduledFor }) => [monthOf(scheduledFor), scheduledFor]))
    this.slots = [...byMonth.values()]
  }
}

/** Tells what failed for want of a month from what failed for another reason. */
export async function namingMissingMonths<Result>(
  runs: readonly NewRun[],
  write: () => Promise<Result>,
): Promise<Result> {
  try {
    return await write()
  } catch (error) {
    throw isMissingPartition(error) ? new MissingMonthError(runs, error) : error
  }
}

/**
 * Each by itself, not all in between: one slot may be years late. Outside of the transaction that failed, which held locks
 * that others wait for.
 */
export async function ensureMonthsOf(db: Db | Tx, slots: readonly number[]): Promise<void> {
  for (const slot of slots) await ensurePartitions(db, { from: new Date(slot), to: new Date(slot) })
}

/** The code of a check that failed, and no check that has a name: its message is in the server's language. */
function isMissingPartition(error: unknown): boolean {
  if (sqlStateOf(error) !== SQLSTATE.checkViolation) return false
  return (error as { readonly constraint?: string }).constraint === undefined
}

function monthOf(slot: number): string {
  return new Date(slot).toISOString().slice(0, 7)
}
