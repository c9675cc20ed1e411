import { CarillonError } from '../errors.ts'
import { SQLSTATE, sqlStateOf } from '../store/sqlstate.ts'
import type { TransactionSettings } from '../store/walled-transaction.ts'

/** What a project, and a user in it, may have; null: any number. */
interface Quota {
  readonly perProject: number | null
  readonly perUser: number | null
}

/**
 * Tells a transaction what its tenant may have, unless the tenant has limits of its own. The database counts (E-31, E-32).
 * Near a limit it asks for the whole transaction again, alone with the count.
 * @throws CarillonError `quota_exceeded`
 */
export async function countingPlaces<Result>(
  { perProject, perUser }: Quota,
  attempt: (settings: TransactionSettings) => Promise<Result>,
): Promise<Result> {
  const settings = {
    'carillon.max_schedules_per_project': perProject === null ? '' : String(perProject),
    'carillon.max_schedules_per_user': perUser === null ? '' : String(perUser),
  }
  try {
    return await attempt(settings)
  } catch (error) {
    if (sqlStateOf(error) !== SQLSTATE.countsNotAlone) throw refused(error)
  }
  try {
    return await attempt({ ...settings, 'carillon.counts_alone': 'on' })
  } catch (error) {
    throw refused(error)
  }
}

function refused(error: unknown): unknown {
  if (sqlStateOf(error) !== SQLSTATE.quotaExceeded) return error
  const { scope, limit } = detailOf(error)
  const whose = scope === 'user' ? 'of one user in this project' : 'in this project'
  const message = `expected at most ${limit} schedules ${whose}, got more: delete some, or have the limit raised`
  return new CarillonError('quota_exceeded', message, { cause: error })
}

/** What `carillon.require_room` said. */
function detailOf(error: unknown): { readonly scope: string; readonly limit: number } {
  const { detail } = error as { readonly detail: string }
  return JSON.parse(detail) as { scope: string; limit: number }
}
