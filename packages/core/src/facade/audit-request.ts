import { transact } from '../store/database.ts'
import { addJobs } from '../store/jobs.ts'
import type { SchedulerContext } from './scheduler-context.ts'

/** The nightly task of every worker; of requests that wait, one is kept. */
const AUDIT_TASK = 'upkeep.audit'

/** Has some worker audit soon; needs one that lives. */
export async function requestAudit({ db, clock }: SchedulerContext): Promise<void> {
  await transact(db, clock, (tx) =>
    addJobs(tx, { jobs: [{ task: AUDIT_TASK, key: AUDIT_TASK, payload: {}, runAt: null }] }),
  )
}
