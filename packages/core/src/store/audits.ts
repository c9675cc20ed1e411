import { sql } from 'kysely'

import type { Db, Tx } from './database.ts'
import { nowOf } from './now.ts'

/** The name of the audit's row in `service_turns`. */
export const AUDIT_TURN = 'audit'

/** What can be wrong, in the words of the ledger (`carillon.finding_kind`). */
export const FINDING_KINDS = [
  'slot_lost',
  'slot_unknown',
  'schedule_past_due',
  'run_without_lease',
  'run_stuck',
  'attempt_missing',
  'revision_missing',
  'run_contradicted',
  'count_wrong',
] as const

export type FindingKind = (typeof FINDING_KINDS)[number]

export interface NewFinding {
  readonly kind: FindingKind
  /** Null if it is of no known schedule. */
  readonly scheduleId: string | null
  /** Null if it is of no slot. */
  readonly scheduledFor: number | null
  /** What was found and, unless nothing is left to do, what to do. */
  readonly detail: string
  readonly isRepaired: boolean
}

/** What an audit looked at and what it came to. */
export interface Audit {
  readonly id: string
  /** False for a report of what was found on the way, before everything was looked at. */
  readonly isWhole: boolean
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

/**
 * Writes down an audit that ends now.
 * @param p.lost how many of the findings are lost slots that got their line
 */
export async function insertAudit(
  tx: Tx,
  p: Omit<Audit, 'completedAt'> & { lost: number; now: Date | null },
): Promise<void> {
  await sql`
    insert into carillon.audits (
      id, is_whole, audited_from, audited_to, started_at, completed_at, schedule_count, slot_count, unreadable_count,
      truncated_count, finding_count, repaired_count, lost_count
    )
    values (
      ${p.id}, ${p.isWhole}, ${new Date(p.from)}, ${new Date(p.to)}, ${new Date(p.startedAt)}, ${nowOf(p.now)}, ${p.schedules}, ${p.slots},
      ${p.unreadable}, ${p.truncated}, ${p.findings}, ${p.repaired}, ${p.lost}
    )`.execute(tx)
}

/**
 * Writes down what an audit found, with the tenant and project of each schedule that still exists. A fault that was found before and
 * is not repaired goes over to this audit, with the instant at which it was found first: it is listed once.
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
        ${findings.map(({ scheduledFor }) => (scheduledFor === null ? null : new Date(scheduledFor).toISOString()))}::timestamptz[],
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

interface AuditRow {
  id: string
  is_whole: boolean
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

/** For how long a lost slot stays in the counts of the latest audit after it got its line. */
const LOST_SHOWN_MS = 86_400_000

/**
 * The last audit that looked at everything, with what was found since it ended; before the first of them the last report of what was
 * found on the way. Ids are as old as the start of an audit.
 *
 * Repairs have rows of their own. Those since the audit began are counted, and of those of the last day the lost slots.
 */
export async function findLatestAudit(db: Db | Tx, p: { now: Date | null }): Promise<Audit | undefined> {
  const { rows } = await sql<AuditRow>`
    select latest.id, latest.is_whole, latest.audited_from, latest.audited_to, latest.started_at, latest.completed_at,
      latest.schedule_count, latest.slot_count, latest.unreadable_count, latest.truncated_count,
      latest.finding_count + since.findings + mended.repairs as finding_count,
      latest.repaired_count + mended.repairs as repaired_count
    from (
      (select audits.* from carillon.audits where audits.is_whole order by audits.id desc limit 1)
      union all
      (select audits.* from carillon.audits where not audits.is_whole order by audits.id desc limit 1)
      order by is_whole desc
      limit 1
    ) as latest
    cross join lateral (
      select coalesce(sum(later.finding_count), 0) as findings
      from carillon.audits as later
      where later.id > latest.id and later.completed_at > latest.completed_at and not later.is_whole
        and later.repaired_count = 0
    ) as since
    cross join lateral (
      select coalesce(sum(
        case when mending.completed_at >= latest.started_at then mending.repaired_count else mending.lost_count end
      ), 0) as repairs
      from carillon.audits as mending
      where mending.repaired_count > 0 and not mending.is_whole and mending.id <> latest.id
        and mending.completed_at >= least(latest.started_at, ${nowOf(p.now)} - ${LOST_SHOWN_MS} * interval '1 millisecond')
    ) as mended`.execute(db)
  const [row] = rows
  return row && toAudit(row)
}

export interface Finding extends NewFinding {
  readonly auditId: string
  /** When it was found first. */
  readonly foundAt: number
  /** When the last audit that found it ended. */
  readonly seenAt: number
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

/** What audits found in a project, the newest audit first. */
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

/** What audits found that belongs to no project: its schedule is gone. By a function of the database, for a wall hides it. */
export async function listUnownedFindings(db: Db | Tx, p: { limit: number }): Promise<Finding[]> {
  const { rows } = await sql<FindingRow>`select * from carillon.list_unowned_findings(${p.limit}::integer)`.execute(db)
  return rows.map(toFinding)
}

/** How many faults of which kind the latest audits found in which project. */
export interface FindingCount {
  readonly kind: FindingKind
  readonly tenantId: string | null
  readonly projectId: string | null
  readonly count: number
}

/**
 * Counts what audits found that ended after an instant, and lost slots of the last day that got their line, over all projects: for
 * whoever may act as a worker.
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
        and audits.completed_at >= ${nowOf(p.now)} - ${LOST_SHOWN_MS} * interval '1 millisecond'
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

/** Asks for an audit; answers the instant of the request, to the millisecond. */
export async function requestAudit(tx: Tx, p: { now: Date | null }): Promise<number> {
  const { rows } = await sql<{ asked_at: Date }>`
    with asked as materialized (
      select date_trunc('milliseconds', ${nowOf(p.now)}) as at
    )
    select asked.at as asked_at, carillon.request_audit(asked.at) from asked`.execute(tx)
  const [row] = rows
  if (row === undefined) throw new Error('Postgres told no time')
  return row.asked_at.getTime()
}

/** Forgets audits that ended before an instant, with their findings; returns how many. */
export async function deleteAudits(db: Db | Tx, p: { before: Date; limit: number }): Promise<number> {
  const { rows } = await sql`
    delete from carillon.audits
    where audits.id = any(array(
      select old.id from carillon.audits as old where old.completed_at < ${p.before} order by old.id limit ${p.limit}
    ))
    returning audits.id`.execute(db)
  return rows.length
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

function toAudit(row: AuditRow): Audit {
  return {
    id: row.id,
    isWhole: row.is_whole,
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
