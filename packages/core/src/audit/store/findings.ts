import { FINDING_KINDS, LOST_SLOT_SHOWN_MS, type FindingKind } from '@carillon/api'

import { boolean, columns, instant, integer, text, uuid, word, type RowFrom } from '../../db/columns.ts'
import type { Db, Tx } from '../../db/database.ts'
import { nowOf } from '../../db/now.ts'
import { instantText } from '../../db/parameters.ts'
import { sql } from '../../db/sql.ts'

/** What a finding is about. */
export interface Fault {
  readonly kind: FindingKind
  /** Null if the schedule is not known. */
  readonly scheduleId: string | null
  /** Null if the finding concerns the schedule, not one slot. */
  readonly scheduledFor: number | null
}

export interface NewFinding extends Fault {
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
        ${findings.map(({ kind }) => kind)}::finding_kind[],
        ${findings.map(({ scheduleId }) => scheduleId)}::uuid[],
        ${findings.map(({ scheduledFor }) => instantText(scheduledFor))}::timestamptz[],
        ${findings.map(({ detail }) => detail)}::text[],
        ${findings.map(({ isRepaired }) => isRepaired)}::boolean[]
      ) with ordinality as finding(kind, schedule_id, scheduled_for, detail, is_repaired, ordinal)
    ), before as (
      delete from audit_findings as before
      using found
      where before.schedule_id = found.schedule_id
        and before.scheduled_for is not distinct from found.scheduled_for
        and before.kind = found.kind
        and not before.is_repaired and not found.is_repaired
      returning found.ordinal, before.found_at
    )
    insert into audit_findings (
      audit_id, ordinal, kind, tenant_id, project_id, schedule_id, scheduled_for, detail, is_repaired, found_at
    )
    select ${p.auditId}, found.ordinal, found.kind, schedules.tenant_id, schedules.project_id, found.schedule_id,
      found.scheduled_for, found.detail, found.is_repaired,
      coalesce((select min(before.found_at) from before where before.ordinal = found.ordinal), ${p.now}::timestamptz)
    from found
    left join schedules on schedules.id = found.schedule_id`.execute(tx)
}

const KIND = word('finding_kind', FINDING_KINDS)

const FINDING_COLUMNS = columns('findings', {
  auditId: uuid,
  foundAt: instant,
  kind: KIND,
  scheduleId: uuid.orNull,
  scheduledFor: instant.orNull,
  detail: text,
  isRepaired: boolean,
})

const OWNED_COLUMNS = FINDING_COLUMNS.with('audits', { seenAt: instant.as(sql`audits.completed_at`) })

/** The findings in a project, those of the most recent audit first. */
export async function listFindings(
  db: Db | Tx,
  p: { tenantId: string; projectId: string; limit: number },
): Promise<Finding[]> {
  return sql`
    select ${OWNED_COLUMNS}
    from audit_findings as findings
    join audits on audits.id = findings.audit_id
    where findings.tenant_id = ${p.tenantId} and findings.project_id = ${p.projectId}
    order by findings.audit_id desc, findings.ordinal
    limit ${p.limit}`.execute(db)
}

const UNREPAIRED_COLUMNS = columns('findings', {
  kind: KIND,
  scheduleId: uuid.orNull,
  scheduledFor: instant.orNull,
}).with('audits', { seenAt: instant.as(sql`audits.completed_at`) })

/** The unrepaired findings that were found since the last full audit began, in all projects. Needs the worker's role. */
export async function listUnrepaired(db: Db, p: { limit: number }): Promise<RowFrom<typeof UNREPAIRED_COLUMNS>[]> {
  return sql`
    select ${UNREPAIRED_COLUMNS}
    from audit_findings as findings
    join audits on audits.id = findings.audit_id
    where not findings.is_repaired
      and audits.completed_at >= coalesce(
        (select whole.started_at from audits as whole where whole.is_whole order by whole.id desc limit 1), '-infinity'
      )
    order by findings.audit_id desc, findings.ordinal
    limit ${p.limit}`.execute(db)
}

const UNOWNED_COLUMNS = FINDING_COLUMNS.with('findings', { seenAt: instant })

/** Findings whose schedule is gone, so that they belong to no project. A database function reads them: row-level security hides them. */
export async function listUnownedFindings(db: Db | Tx, p: { limit: number }): Promise<Finding[]> {
  return sql`
    select ${UNOWNED_COLUMNS}
    from list_unowned_findings(${p.limit}::integer) as findings`.execute(db)
}

/** How many findings of one kind there are in one project. */
export interface FindingCount {
  readonly kind: FindingKind
  readonly tenantId: string | null
  readonly projectId: string | null
  readonly count: number
}

const COUNT_COLUMNS = columns('findings', {
  kind: KIND,
  tenantId: text.orNull,
  projectId: text.orNull,
  count: integer.as(sql`count(*)::integer`),
})

/**
 * Counts the findings of audits that ended at or after an instant, and the repaired lost slots of the last day, over all projects. Needs
 * the worker's role.
 * @param p.now an instant that a test sets; null: Postgres' clock
 */
export async function countFindings(
  db: Db,
  p: { after: Date; limit: number; now: Date | null },
): Promise<FindingCount[]> {
  return sql`
    select ${COUNT_COLUMNS}
    from audit_findings as findings
    join audits on audits.id = findings.audit_id
    where audits.completed_at >= ${p.after}
      or (
        findings.kind = 'slot_lost' and findings.is_repaired
        and audits.completed_at >= ${nowOf(p.now)} - ${LOST_SLOT_SHOWN_MS} * interval '1 millisecond'
      )
    group by findings.kind, findings.tenant_id, findings.project_id
    order by count(*) desc, findings.kind, findings.tenant_id, findings.project_id
    limit ${p.limit}`.execute(db)
}
