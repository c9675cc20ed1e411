import { openPool, type BenchPool } from './bench-pool.ts'

interface Counts {
  readonly schedules: number
  readonly due: number
  readonly runs: number
  readonly succeeded: number
  readonly attempts: number
}

/**
 * Checks that a drain wrote every row, because a drain that leaves rows out is not comparable.
 * @param tenant the prefix of the tenants' names
 */
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

/** Checks that a create wrote every row, because a create that leaves rows out is not comparable. */
export async function requireMade(url: string, count: number): Promise<void> {
  await using pool = openPool(url)
  const { rows } = await pool.query<{ counts: number[] }>(
    `select array[
      (select count(*) from carillon.schedules where state = 'active'),
      (select count(*) from carillon.schedule_revisions),
      (select count(*) from carillon.execution_grants),
      (select count(*) from carillon.schedule_changes)
    ]::int[] as counts`,
  )
  const counts = rows[0]?.counts ?? []
  if (counts.length === 4 && counts.every((made) => made === count)) return
  throw new Error(`expected ${count} rows in each table of schedules, got ${counts.join(', ')}`)
}
