import { sql, type RawBuilder } from 'kysely'

/**
 * Runs that are not over: the predicate of `runs_open_idx`. Postgres uses a partial index only where the statement implies its
 * predicate, so this stands beside every narrower state that is asked for.
 *
 * No list of states: behind row-level security Postgres has no statistics for a comparison of an enum. It takes every run for
 * open and reads the whole ledger.
 * @param runs the name that `carillon.runs` goes by in the statement
 */
export function isOpen(runs = 'runs'): RawBuilder<boolean> {
  return sql<boolean>`${sql.ref(`${runs}.completed_at`)} is null`
}
