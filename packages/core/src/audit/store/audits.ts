import { LOST_SLOT_SHOWN_MS } from '@carillon/api'
import { sql } from 'kysely'

import type { Db, Tx } from '../../db/database.ts'
import { nowOf } from '../../db/now.ts'

/* `p.now` is null in production: Postgres' clock decides. Tests pass an instant. */

/** The name of the auditor's row in `service_turns`. */
export const AUDIT_TURN = 'audit'

/** How much an audit has compared. */
export interface ComparedCounts {
  readonly schedules: number
  readonly slots: number
  /** Schedules whose spec cannot be read, or whose slots cannot be found. */
  readonly unreadable: number
  /** Schedules with more slots than one audit compares: only the earliest slots were compared. */
  readonly truncated: number
}

/** What an audit examined and how much it found. Instants are epoch milliseconds. */
export interface Audit extends ComparedCounts {
  readonly id: string
  /** True for a full audit; false for what was found or repaired between two of them. */
  readonly isWhole: boolean
  readonly from: number
  readonly to: number
  readonly startedAt: number
  readonly completedAt: number
  readonly findings: number
  readonly repaired: number
}

/**
 * Inserts an audit that ends now.
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

/**
 * The last full audit, plus everything found since it ended. Before the first full audit: the last row of findings or repairs. Ids sort
 * by the start of an audit.
 *
 * Repairs are rows of their own. The result counts the repairs since the start of that audit. Of older repairs it counts only the lost
 * slots of the last day.
 */
export async function findLatestAudit(db: Db | Tx, p: { now: Date | null }): Promise<Audit | undefined> {
  const { rows } = await sql<AuditRow>`
    select latest.id, latest.is_whole, latest.audited_from, latest.audited_to, latest.started_at, latest.completed_at,
      latest.schedule_count, latest.slot_count, latest.unreadable_count, latest.truncated_count,
      latest.finding_count + since.findings + repairs_since.count as finding_count,
      latest.repaired_count + repairs_since.count as repaired_count
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
        case when repair.completed_at >= latest.started_at then repair.repaired_count else repair.lost_count end
      ), 0) as count
      from carillon.audits as repair
      where repair.repaired_count > 0 and not repair.is_whole and repair.id <> latest.id
        and repair.completed_at >= least(latest.started_at, ${nowOf(p.now)} - ${LOST_SLOT_SHOWN_MS} * interval '1 millisecond')
    ) as repairs_since`.execute(db)
  const [row] = rows
  return row && toAudit(row)
}

/**
 * Requests a full audit from the workers.
 * @returns the instant of the request, to the millisecond
 */
export async function insertAuditRequest(tx: Tx, p: { now: Date | null }): Promise<number> {
  const { rows } = await sql<{ asked_at: Date }>`
    with asked as materialized (
      select date_trunc('milliseconds', ${nowOf(p.now)}) as at
    )
    select asked.at as asked_at, carillon.request_audit(asked.at) from asked`.execute(tx)
  const [row] = rows
  if (row === undefined) throw new Error('expected the instant of the request, got no row')
  return row.asked_at.getTime()
}

/**
 * Deletes audits that ended before an instant, with their findings.
 * @returns how many
 */
export async function deleteAudits(db: Db | Tx, p: { before: Date; limit: number }): Promise<number> {
  const { rows } = await sql`
    delete from carillon.audits
    where audits.id = any(array(
      select old.id from carillon.audits as old where old.completed_at < ${p.before} order by old.id limit ${p.limit}
    ))
    returning audits.id`.execute(db)
  return rows.length
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
