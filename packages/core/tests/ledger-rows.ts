import type pg from 'pg'

/** All rows that the pipeline writes. Two reads are equal if no row changed in between. */
export interface LedgerRows {
  readonly runs: readonly Row[]
  readonly attempts: readonly Row[]
  readonly schedules: readonly Row[]
  readonly changes: readonly Row[]
}

type Row = Readonly<Record<string, unknown>>

export async function readLedger(pool: pg.Pool): Promise<LedgerRows> {
  const rowsOf = async (text: string): Promise<Row[]> => (await pool.query<Row>(text)).rows
  return {
    runs: await rowsOf('select * from carillon.runs order by schedule_id, scheduled_for'),
    attempts: await rowsOf('select * from carillon.attempts order by schedule_id, scheduled_for, attempt'),
    schedules: await rowsOf('select * from carillon.schedules order by id'),
    changes: await rowsOf('select * from carillon.schedule_changes order by id'),
  }
}
