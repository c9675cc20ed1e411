import type { BenchPool } from './bench-pool.ts'

interface Counts {
  readonly schedules: number
  readonly due: number
  readonly runs: number
  readonly succeeded: number
  readonly attempts: number
}

/** Who drains fast and forgets something has not drained. `tenant` is what the names of their tenants begin with. */
export async function requireWholeLedger(pool: BenchPool, count: number, tenant: string): Promise<void> {
  const { rows } = await pool.query<Counts>(
    `with schedule as (
      select id, due_at from carillon.schedules where starts_with(tenant_id, $1 || '-')
    ), run as (
      select state from carillon.runs where schedule_id in (select id from schedule)
    )
    select (select count(*) from schedule)::int as schedules,
      (select count(*) from schedule where due_at <= now())::int as due,
      (select count(*) from run)::int as runs,
      (select count(*) from run where state = 'succeeded')::int as succeeded,
      (
        select count(*) from carillon.attempts where outcome = 'succeeded' and schedule_id in (select id from schedule)
      )::int as attempts`,
    [tenant],
  )
  const wanted: Counts = { schedules: count, due: 0, runs: count, succeeded: count, attempts: count }
  const got = JSON.stringify(rows[0])
  if (got !== JSON.stringify(wanted)) throw new Error(`expected the ledger ${JSON.stringify(wanted)}, got ${got}`)
}
