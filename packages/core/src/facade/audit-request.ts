import * as audits from '../store/audits.ts'
import type { SchedulerContext } from './scheduler-context.ts'

/**
 * Has some worker audit now; needs one that lives. Answers the instant of the request: the audit that it asked for starts no
 * earlier. By Postgres' clock, as audits are, and from before the commit: a worker may begin the audit before the caller learns
 * that the request was written.
 */
export async function requestAudit({ transact, clock }: SchedulerContext): Promise<number> {
  return transact(null, (tx) => audits.requestAudit(tx, { now: clock.databaseNow() }))
}
