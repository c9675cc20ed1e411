import { createDb, createPool, ensurePartitions } from '@carillon/core'

import { nowMs } from '../clock.ts'
import { openPool, type BenchPool } from './bench-pool.ts'

/** The table of schedules with a history. Each has enough runs for full pages. */
export const HISTORIES = 'public.bench_histories'
const RUNS_PER_HISTORY = 100
const HALF_A_DAY = 43_200_000
const DAYS = 86_400_000
/** Each run has a row in `runs` and one in `attempts`. */
const ROWS_PER_RUN = 2
const BATCH = 100_000

/**
 * Writes this many rows in runs and attempts together, for the fifty days before now. They are in the order of their slots, as a worker
 * would write them, so the runs of one schedule are far apart.
 */
export async function fillLedger(url: string, rows: number, signal: AbortSignal): Promise<void> {
  await using pool = openPool(url)
  const runs = Math.ceil(rows / ROWS_PER_RUN)
  const histories = Math.ceil(runs / RUNS_PER_HISTORY)
  await makeMonths(url)
  await pool.query(
    `create unlogged table ${HISTORIES} as
    select row_number() over (order by id) as n, id, tenant_id, project_id from carillon.schedules order by id limit $1`,
    [histories],
  )
  // The event log records changes, and these rows are not changes.
  await pool.query('alter table carillon.runs disable trigger runs_inserted')
  const perBatch = Math.max(1, Math.floor(BATCH / histories))
  for (let from = 0; from < RUNS_PER_HISTORY; from += perBatch) {
    signal.throwIfAborted()
    await insertLines(pool, { from, to: Math.min(from + perBatch, RUNS_PER_HISTORY), runs })
  }
  await pool.query('alter table carillon.runs enable trigger runs_inserted')
  await pool.query('vacuum (analyze) carillon.runs')
  await pool.query('vacuum (analyze) carillon.attempts')
  await pool.query('checkpoint')
}

async function makeMonths(url: string): Promise<void> {
  const pool = createPool({ connectionString: url, maxConnections: 1 })
  const db = createDb(pool)
  const at = nowMs()
  await ensurePartitions(db, { from: new Date(at - (RUNS_PER_HISTORY / 2 + 1) * DAYS), to: new Date(at) })
  await pool.end()
}

/** Inserts the slots number `from` to `to` of every history, the oldest first, and at most `runs`. */
async function insertLines(pool: BenchPool, p: { from: number; to: number; runs: number }): Promise<void> {
  await pool.query(
    `with slot as (
      select history.*, uuidv7() as run_id,
        date_trunc('milliseconds', now() - (${RUNS_PER_HISTORY} - k) * $4::float8 * interval '1 ms') + history.n % 1000 * interval '1 ms'
          as slot
      from generate_series($1::int, $2::int - 1) as k, ${HISTORIES} as history
      where k * (select count(*) from ${HISTORIES}) + history.n <= $3
      order by k, history.n
    ), run as (
      insert into carillon.runs (
        schedule_id, scheduled_for, id, tenant_id, project_id, revision, trigger, state, attempt_count, token, begun_at,
        started_at, completed_at
      )
      select id, slot, run_id, tenant_id, project_id, 1, 'schedule', 'succeeded', 1, 1, slot, slot, slot
      from slot
    )
    insert into carillon.attempts (
      schedule_id, scheduled_for, attempt, tenant_id, project_id, worker_id, outcome, started_at, completed_at
    )
    select id, slot, 1, tenant_id, project_id, id, 'succeeded', slot, slot
    from slot`,
    [p.from, p.to, p.runs, HALF_A_DAY],
  )
}
