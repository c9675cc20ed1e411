import { transact } from '../store/database.ts'
import { addJobs } from '../store/jobs.ts'
import { readNow } from '../store/now.ts'
import type { SchedulerContext } from './scheduler-context.ts'

/** The nightly task of every worker; of requests that wait, one is kept. */
const AUDIT_TASK = 'upkeep.audit'

/**
 * Has some worker audit soon; needs one that lives. Answers the instant of the request: the audit that it asked for
 * starts no earlier. By Postgres' clock, as audits are, and from before the commit: a worker may begin the audit before the
 * caller learns that the request was written.
 */
export async function requestAudit({ db, clock }: SchedulerContext): Promise<number> {
  return transact(db, clock, async (tx) => {
    await addJobs(tx, { jobs: [{ task: AUDIT_TASK, key: AUDIT_TASK, payload: {}, runAt: null }] })
    return readNow(tx, clock.databaseNow())
  })
}
