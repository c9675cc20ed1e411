import { openPool } from './bench-pool.ts'

/** Who makes schedules fast and half of their rows has not made them. */
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
