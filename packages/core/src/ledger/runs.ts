import { expectedText, isUuid } from '@carillon/api'

import type { Tx } from '../db/database.ts'
import { CarillonError } from '../kernel/errors.ts'
import type { Scope } from '../kernel/scope.ts'
import type { Attempt, Run } from './records.ts'
import { findRun, listAttempts } from './store/runs.ts'

export { listChanges, listOpenRuns, listRuns } from './store/runs.ts'

export type RunWithAttempts = Run & { readonly attempts: readonly Attempt[] }

/** @throws CarillonError `run_not_found`, also for a run of another project (I9) */
export async function getRun(tx: Tx, p: Scope & { readonly id: string }): Promise<RunWithAttempts> {
  const run = await findRunOf(tx, p)
  return { ...run, attempts: await listAttempts(tx, run) }
}

/** @throws CarillonError `run_not_found`, also for a run of another project (I9) */
export async function findRunOf(tx: Tx, p: Scope & { readonly id: string }): Promise<Run> {
  const run = isUuid(p.id) ? await findRun(tx, p) : undefined
  if (run === undefined) throw new CarillonError('run_not_found', expectedText('the id of a run of this project', p.id))
  return run
}
