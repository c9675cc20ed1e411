import { PAGE_SIZE } from '@carillon/api'

import type { Tx } from '../db/database.ts'
import { readReached } from '../jobs/turn-service.ts'
import { checkedCount } from '../kernel/arguments.ts'
import type { Clock } from '../kernel/clock.ts'
import { type Caller, scopeOf } from '../kernel/scope.ts'
import { AUDIT_TURN, findLatestAudit, insertAuditRequest, type Audit } from './store/audits.ts'
import { listFindings, listUnownedFindings, type Finding } from './store/findings.ts'

export { deleteAudits, type Audit } from './store/audits.ts'
export type { Finding } from './store/findings.ts'

/** The parts of the scheduler that the operations below use. */
export interface AuditContext {
  readonly clock: Clock
  /** Runs a transaction in the scope of a caller. With null it sees no row of any tenant (I9). */
  readonly transact: <Result>(caller: Caller | null, work: (tx: Tx) => Promise<Result>) => Promise<Result>
}

export interface FindingPage {
  /** At most `PAGE_SIZE.max`. @default `PAGE_SIZE.default` */
  readonly limit?: number
}

/** Requests a full audit from the workers, and returns the instant of the request. */
export function requestAudit({ transact, clock }: AuditContext): Promise<number> {
  return transact(null, (tx) => insertAuditRequest(tx, { now: clock.databaseNow() }))
}

export function latestAudit({ transact, clock }: AuditContext): Promise<Audit | undefined> {
  return transact(null, (tx) => findLatestAudit(tx, { now: clock.databaseNow() }))
}

/** Slots that came due up to this instant (epoch milliseconds) have been compared with the specs; null if it is not known. */
export function auditedUntil({ transact }: AuditContext): Promise<number | null> {
  return transact(null, (tx) => readReached(tx, { name: AUDIT_TURN }))
}

export async function findings(
  { transact }: AuditContext,
  caller: Caller,
  { limit = PAGE_SIZE.default }: FindingPage,
): Promise<Finding[]> {
  const query = { ...scopeOf(caller), limit: checkedCount(limit, PAGE_SIZE.max, 'limit') }
  return transact(caller, (tx) => listFindings(tx, query))
}

export async function unownedFindings(
  { transact }: AuditContext,
  { limit = PAGE_SIZE.default }: FindingPage,
): Promise<Finding[]> {
  const query = { limit: checkedCount(limit, PAGE_SIZE.max, 'limit') }
  return transact(null, (tx) => listUnownedFindings(tx, query))
}
