import { LOST_SLOT_SHOWN_MS, type FindingKind } from '@carillon/api'
import { sql } from 'kysely'

import type { Db, Tx } from '../../db/database.ts'
import { nowOf } from '../../db/now.ts'
import { instantText } from '../../db/parameters.ts'

export interface NewFinding {
  readonly kind: FindingKind
  /** Null if the schedule is not known. */
  readonly scheduleId: string | null
  /** Null if the finding concerns the schedule, not one slot. */
  readonly scheduledFor: number | null
  /** What was found and, unless nothing is left to do, what to do. */
  readonly detail: string
  readonly isRepaired: boolean
}

export interface Finding extends NewFinding {
  readonly auditId: string
  /** When an audit found it first. */
  readonly foundAt: number
  /** When the last audit that found it ended. */
  readonly seenAt: number
}

/**
 * Writes the findings of an audit, with the tenant and project of each schedule that still exists. A finding that is already there
 * and not repaired moves to this audit and keeps the instant at which it was found first, so each is listed once.
 */
export async function insertFindings(
  tx: Tx,
  p: { auditId: string; findings: readonly NewFinding[]; now: Date },
): Promise<void> {
  const { findings } = p
  await sql`
    with found as materialized (
      select *
      from unnest(
        ${findings.map(({ kind }) => kind)}::carillon.finding_kind[],
        ${findings.map(({ scheduleId }) => scheduleId)}::uuid[],
        ${findings.map(({ scheduledFor }) => instantText(scheduledFor))}::timestamptz[],
        ${findings.map(({ detail }) => detail)}::text[],
        ${findings.map(({ isRepaired }) => isRepaired)}::boolean[]
      ) with ordinality as finding(kind, schedule_id, scheduled_for, detail, is_repaired, ordinal)
    ), before as (
      delete from carillon.audit_findings as before
      using found
      where before.schedule_id = found.schedule_id
        and before.scheduled_for is not distinct from found.scheduled_for
        and before.kind = found.kind
        and not before.is_repaired and not found.is_repaired
      returning found.ordinal, before.found_at
    )
    insert into carillon.audit_findings (
      audit_id, ordinal, kind, tenant_id, project_id, schedule_id, scheduled_for, detail, is_repaired, found_at
    )
    select ${p.auditId}, found.ordinal, found.kind, schedules.tenant_id, schedules.project_id, found.schedule_id,
      found.scheduled_for, found.detail, found.is_repaired,
      coalesce((select min(before.found_at) from before where before.ordinal = found.ordinal), ${p.now}::timestamptz)
    from found
    left join carillon.schedules on schedules.id = found.schedule_id`.execute(tx)
}

interface FindingRow {
  audit_id: string
  found_at: Date
  seen_at: Date
  kind: FindingKind
  schedule_id: string | null
  scheduled_for: Date | null
  detail: string
  is_repaired: boolean
}

/** The findings in a project, those of the most recent audit first. */
export async function listFindings(
  db: Db | Tx,
  p: { tenantId: string; projectId: string; limit: number },
): Promise<Finding[]> {
  const { rows } = await sql<FindingRow>`
    select findings.audit_id, findings.found_at, audits.completed_at as seen_at, findings.kind, findings.schedule_id,
      findings.scheduled_for, findings.detail, findings.is_repaired
    from carillon.audit_findings as findings
    join carillon.audits on audits.id = findings.audit_id
    where findings.tenant_id = ${p.tenantId} and findings.project_id = ${p.projectId}
    order by findings.audit_id desc, findings.ordinal
    limit ${p.limit}`.execute(db)
  return rows.map(toFinding)
}

/** Findings whose schedule is gone, so that they belong to no project. A database function reads them: row-level security hides them. */
export async function listUnownedFindings(db: Db | Tx, p: { limit: number }): Promise<Finding[]> {
  const { rows } = await sql<FindingRow>`select * from carillon.list_unowned_findings(${p.limit}::integer)`.execute(db)
  return rows.map(toFinding)
}

/** How many findings of one kind there are in one project. */
export interface FindingCount {
  readonly kind: FindingKind
  readonly tenantId: string | null
  readonly projectId: string | null
  readonly count: number
}

/**
 * Counts the findings of audits that ended at or after an instant, and the repaired lost slots of the last day, over all projects. Needs
 * the worker's role.
 * @param p.now an instant that a test sets; null: Postgres' clock
 */
export async function countFindings(
  db: Db,
  p: { after: Date; limit: number; now: Date | null },
): Promise<FindingCount[]> {
  const { rows } = await sql<{ kind: FindingKind; tenant_id: string | null; project_id: string | null; count: number }>`
    select findings.kind, findings.tenant_id, findings.project_id, count(*)::integer as count
    from carillon.audit_findings as findings
    join carillon.audits on audits.id = findings.audit_id
    where audits.completed_at >= ${p.after}
      or (
        findings.kind = 'slot_lost' and findings.is_repaired
        and audits.completed_at >= ${nowOf(p.now)} - ${LOST_SLOT_SHOWN_MS} * interval '1 millisecond'
      )
    group by findings.kind, findings.tenant_id, findings.project_id
    order by count(*) desc, findings.kind, findings.tenant_id, findings.project_id
    limit ${p.limit}`.execute(db)
  return rows.map((row) => ({
    kind: row.kind,
    tenantId: row.tenant_id,
    projectId: row.project_id,
    count: row.count,
  }))
}

function toFinding(row: FindingRow): Finding {
  return {
    auditId: row.audit_id,
    foundAt: row.found_at.getTime(),
    seenAt: row.seen_at.getTime(),
    kind: row.kind,
    scheduleId: row.schedule_id,
    scheduledFor: row.scheduled_for?.getTime() ?? null,
    detail: row.detail,
    isRepaired: row.is_repaired,
  }
}
