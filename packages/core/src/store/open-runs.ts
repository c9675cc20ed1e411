import { sql, type RawBuilder } from 'kysely'

/**
 * Runs that are not over: the predicate of `runs_open_idx`, word for word. Postgres uses a partial index only where the
 * statement implies its predicate, so this stands beside every narrower state that is asked for.
 * @param runs the name that `carillon.runs` goes by in the statement
 */
export function isOpen(runs = 'runs'): RawBuilder<boolean> {
  return sql<boolean>`${sql.ref(`${runs}.state`)} in ('pending', 'running', 'retrying')`
}
