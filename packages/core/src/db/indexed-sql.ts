import { rawSql, sql, type Sql } from './sql.ts'

/* SQL that several rooms share because Postgres uses an index only if a statement is worded like this. */

/**
 * True for runs that are not over: the predicate of `runs_open_idx`. Postgres uses a partial index only if the statement implies
 * its predicate, so this stands beside every narrower state that a statement asks for.
 *
 * It names no states: behind row-level security Postgres has no statistics for comparisons of an enum. It would expect every run to
 * be open, and read the whole ledger (tests/pipeline/open-run-plans.test.ts).
 * @param runs the name of the table `runs` in the statement
 */
export function isOpen(runs = 'runs'): Sql<never> {
  return rawSql(`${runs}.completed_at is null`)
}

/**
 * The lanes that have an active schedule, as the common table expression `lanes(lane)` for `with recursive`. It steps from lane to
 * lane through `schedules_agenda_idx`, so it reads one entry per lane, however many schedules there are.
 */
export function activeLanes(): Sql<never> {
  return sql`lanes(lane) as (
      select min(schedules.lane) from schedules where schedules.state = 'active'
      union all
      select (
        select min(schedules.lane) from schedules where schedules.state = 'active' and schedules.lane > lanes.lane
      )
      from lanes
      where lanes.lane is not null
    )`
}
