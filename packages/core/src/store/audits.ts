import { sql } from 'kysely'

import type { Db, Tx } from './database.ts'
import { nowOf } from './now.ts'

/** What can be wrong, in the words of the ledger (`carillon.finding_kind`). */
export const FINDING_KINDS = [
  'slot_lost',
  'slot_unknown',
  'schedule_past_due',
  'run_without_lease',
  'run_without_job',
  'job_without_run',
] as const

export type FindingKind = (typeof FINDING_KINDS)[number]

export interface NewFinding {
  readonly kind: FindingKind
  /** Null for a job of no known run. */
  readonly scheduleId: string | null
  readonly scheduledFor: number | null
  readonly detail: string
  readonly isRepaired: boolean
}

/** What an audit looked at and what it came to. */
export interface Audit {
  readonly id: string
  readonly from: number
  readonly to: number
  readonly startedAt: number
  readonly completedAt: number
  readonly schedules: number
  readonly slots: number
  /** Schedules that could not be audited because their spec cannot be read. */
  readonly unreadable: number
  /** Schedules with more slots than one audit compares: only the earliest were. */
  readonly truncated: number
  readonly findings: number
  readonly repaired: number
}

/** Writes down an audit that ends now. */
export async function insertAudit(tx: Tx, p: Omit<Audit, 'completedAt'> & { now: Date | null }): Promise<void> {
  await sql`
    insert into carillon.audits (
      id, audited_from, audited_to, started_at, completed_at, schedule_count, slot_count, unreadable_count,
      truncated_count, finding_count, repaired_count
    )
    values (
      ${p.id}, ${new Date(p.from)}, ${new Date(p.to)}, ${new Date(p.startedAt)}, ${nowOf(p.now)}, ${p.schedules}, ${p.slots},
      ${p.unreadable}, ${p.truncated}, ${p.findings}, ${p.repaired}
    )`.execute(tx)
}

/** Writes down what an audit found, with the tenant and project of each schedule that still exists. */
export async function insertFindings(tx: Tx, p: { auditId: string; findings: readonly NewFinding[] }): Promise<void> {
  const { findings } = p
  await sql`
    insert into carillon.audit_findings (
      audit_id, ordinal, kind, tenant_id, project_id, schedule_id, scheduled_for, detail, is_repaired
    )
    select ${p.auditId}, finding.ordinal, finding.kind, schedules.tenant_id, schedules.project_id, finding.schedule_id,
      finding.scheduled_for, finding.detail, finding.is_repaired
    from unnest(
      ${findings.map(({ kind }) => kind)}::carillon.finding_kind[],
      ${findings.map(({ scheduleId }) => scheduleId)}::uuid[],
      ${findings.map(({ scheduledFor }) => (scheduledFor === null ? null : new Date(scheduledFor).toISOString()))}::timestamptz[],
      ${findings.map(({ detail }) => detail)}::text[],
      ${findings.map(({ isRepaired }) => isRepaired)}::boolean[]
    ) with ordinality as finding(kind, schedule_id, scheduled_for, detail, is_repaired, ordinal)
    left join carillon.schedules on schedules.id = finding.schedule_id`.execute(tx)
}

interface AuditRow {
  id: string
  audited_from: Date
  audited_to: Date
  started_at: Date
  completed_at: Date
  schedule_count: string
  slot_count: string
  unreadable_count: string
  truncated_count: string
  finding_count: string
  repaired_count: string
}

/** The last audit; its id is as old as its start. */
export async function findLatestAudit(db: Db | Tx): Promise<Audit | undefined> {
  const { rows } = await sql<AuditRow>`
    select id, audited_from, audited_to, started_at, completed_at, schedule_count, slot_count, unreadable_count,
      truncated_count, finding_count, repaired_count
    from carillon.audits
    order by id desc
    limit 1`.execute(db)
  const [row] = rows
  return row && toAudit(row)
}

export interface Finding extends NewFinding {
  readonly auditId: string
  /** When the audit that found it ended. */
  readonly foundAt: number
}

/** What audits found in a project, the newest audit first. */
export async function listFindings(
  db: Db | Tx,
  p: { tenantId: string; projectId: string; limit: number },
): Promise<Finding[]> {
  const { rows } = await sql<{
    audit_id: string
    completed_at: Date
    kind: FindingKind
    schedule_id: string | null
    scheduled_for: Date | null
    detail: string
    is_repaired: boolean
  }>`
    select findings.audit_id, audits.completed_at, findings.kind, findings.schedule_id, findings.scheduled_for,
      findings.detail, findings.is_repaired
    from carillon.audit_findings as findings
    join carillon.audits on audits.id = findings.audit_id
    where findings.tenant_id = ${p.tenantId} and findings.project_id = ${p.projectId}
    order by findings.audit_id desc, findings.ordinal
    limit ${p.limit}`.execute(db)
  return rows.map((row) => ({
    auditId: row.audit_id,
    foundAt: row.completed_at.getTime(),
    kind: row.kind,
    scheduleId: row.schedule_id,
    scheduledFor: row.scheduled_for?.getTime() ?? null,
    detail: row.detail,
    isRepaired: row.is_repaired,
  }))
}

/** Forgets audits that ended before an instant, with their findings; returns how many. */
export async function deleteAudits(db: Db | Tx, p: { before: Date }): Promise<number> {
  const { rows } = await sql`
    delete from carillon.audits
    where audits.completed_at < ${p.before}
    returning audits.id`.execute(db)
  return rows.length
}

function toAudit(row: AuditRow): Audit {
  return {
    id: row.id,
    from: row.audited_from.getTime(),
    to: row.audited_to.getTime(),
    startedAt: row.started_at.getTime(),
    completedAt: row.completed_at.getTime(),
    schedules: Number(row.schedule_count),
    slots: Number(row.slot_count),
    unreadable: Number(row.unreadable_count),
    truncated: Number(row.truncated_count),
    findings: Number(row.finding_count),
    repaired: Number(row.repaired_count),
  }
}
