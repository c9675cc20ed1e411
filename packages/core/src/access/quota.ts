import { z } from 'zod'

import { SQLSTATE, sqlStateOf } from '../db/sqlstate.ts'
import type { TransactionSettings } from '../db/transact.ts'
import { CarillonError } from '../kernel/errors.ts'

export { requireQuota } from './store/tenants.ts'

/** How many schedules a project and one user in it may have; null: any number. */
interface Quota {
  readonly perProject: number | null
  readonly perUser: number | null
}

/**
 * Runs a transaction that creates schedules under the installation's quota; limits of the tenant itself take precedence. The
 * database counts the schedules. Near the limit it may refuse the transaction because others add schedules at the same time. Then the
 * whole transaction runs again, this time with an exclusive lock on the count.
 * @throws CarillonError `quota_exceeded`
 */
export async function withQuota<Result>(
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
  const detail = detailOf(error)
  if (detail === undefined) return error
  const { scope, limit } = detail
  const whose = scope === 'user' ? 'of one user in this project' : 'in this project'
  const message = `expected at most ${limit} schedules ${whose}, got more: delete some, or have the limit raised`
  return new CarillonError('quota_exceeded', message, { cause: error })
}

const DETAIL = z.object({ scope: z.enum(['project', 'user']), limit: z.int() })

/** The detail that the database function `check_quota` attaches to its error. Undefined if it did not arrive, or is no such JSON. */
function detailOf(error: unknown): z.infer<typeof DETAIL> | undefined {
  const { detail } = error as { readonly detail?: unknown }
  if (typeof detail !== 'string') return undefined
  try {
    return DETAIL.safeParse(JSON.parse(detail)).data
  } catch {
    return undefined
  }
}
