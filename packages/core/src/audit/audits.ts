import { PAGE_SIZE } from '@carillon/api'
import type { z } from 'zod'

import type { Tx } from '../db/database.ts'
import { readReached } from '../jobs/turn-service.ts'
import { checkedObject, PAGE } from '../kernel/checked-object.ts'
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

const FINDING_PAGE = PAGE.pick({ limit: true })

export type FindingPage = z.input<typeof FINDING_PAGE>

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

export async function findings({ transact }: AuditContext, caller: Caller, options: FindingPage): Promise<Finding[]> {
  const query = { ...scopeOf(caller), limit: checkedLimit(options) }
  return transact(caller, (tx) => listFindings(tx, query))
}

export async function unownedFindings({ transact }: AuditContext, options: FindingPage): Promise<Finding[]> {
  const query = { limit: checkedLimit(options) }
  return transact(null, (tx) => listUnownedFindings(tx, query))
}

function checkedLimit(options: FindingPage): number {
  return checkedObject(options, FINDING_PAGE).limit ?? PAGE_SIZE.default
}
