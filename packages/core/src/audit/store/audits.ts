import { LOST_SLOT_SHOWN_MS } from '@carillon/api'

import { bigint, boolean, columns, instant, uuid } from '../../db/columns.ts'
import type { Db, Tx } from '../../db/database.ts'
import { nowOf } from '../../db/now.ts'
import { sql } from '../../db/sql.ts'

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
    insert into audits (
      id, is_whole, audited_from, audited_to, started_at, completed_at, schedule_count, slot_count, unreadable_count,
      truncated_count, finding_count, repaired_count, lost_count
    )
    values (
      ${p.id}, ${p.isWhole}, ${new Date(p.from)}, ${new Date(p.to)}, ${new Date(p.startedAt)}, ${nowOf(p.now)}, ${p.schedules}, ${p.slots},
      ${p.unreadable}, ${p.truncated}, ${p.findings}, ${p.repaired}, ${p.lost}
    )`.execute(tx)
}

// The sum of a bigint is a numeric.
const AUDIT_COLUMNS = columns('latest', {
  id: uuid,
  isWhole: boolean,
  from: instant.as(sql`latest.audited_from`),
  to: instant.as(sql`latest.audited_to`),
  startedAt: instant,
  completedAt: instant,
  schedules: bigint.as(sql`latest.schedule_count`),
  slots: bigint.as(sql`latest.slot_count`),
  unreadable: bigint.as(sql`latest.unreadable_count`),
  truncated: bigint.as(sql`latest.truncated_count`),
  findings: bigint.as(sql`(latest.finding_count + since.findings + repairs_since.count)::bigint`),
  repaired: bigint.as(sql`(latest.repaired_count + repairs_since.count)::bigint`),
})

/**
 * The last full audit, plus everything found since it ended. Before the first full audit: the last row of findings or repairs. Ids sort
 * by the start of an audit.
 *
 * Repairs are rows of their own. The result counts the repairs since the start of that audit. Of older repairs it counts only the lost
 * slots of the last day.
 */
export async function findLatestAudit(db: Db | Tx, p: { now: Date | null }): Promise<Audit | undefined> {
  const [audit] = await sql`
    select ${AUDIT_COLUMNS}
    from (
      (select audits.* from audits where audits.is_whole order by audits.id desc limit 1)
      union all
      (select audits.* from audits where not audits.is_whole order by audits.id desc limit 1)
      order by is_whole desc
      limit 1
    ) as latest
    cross join lateral (
      select coalesce(sum(later.finding_count), 0) as findings
      from audits as later
      where later.id > latest.id and later.completed_at > latest.completed_at and not later.is_whole
        and later.repaired_count = 0
    ) as since
    cross join lateral (
      select coalesce(sum(
        case when repair.completed_at >= latest.started_at then repair.repaired_count else repair.lost_count end
      ), 0) as count
      from audits as repair
      where repair.repaired_count > 0 and not repair.is_whole and repair.id <> latest.id
        and repair.completed_at >= least(latest.started_at, ${nowOf(p.now)} - ${LOST_SLOT_SHOWN_MS} * interval '1 millisecond')
    ) as repairs_since`.execute(db)
  return audit
}

const REQUEST_COLUMNS = columns('asked', { askedAt: instant.as(sql`asked.at`) })

/**
 * Requests a full audit from the workers.
 * @returns the instant of the request, to the millisecond
 */
export async function insertAuditRequest(tx: Tx, p: { now: Date | null }): Promise<number> {
  const [row] = await sql`
    with asked as materialized (
      select date_trunc('milliseconds', ${nowOf(p.now)}) as at
    )
    select ${REQUEST_COLUMNS} from asked cross join lateral request_audit(asked.at)`.execute(tx)
  if (row === undefined) throw new Error('expected the instant of the request, got no row')
  return row.askedAt
}

/**
 * Deletes audits that ended before an instant, with their findings.
 * @returns how many
 */
export async function deleteAudits(db: Db | Tx, p: { before: Date; limit: number }): Promise<number> {
  const rows = await sql`
    delete from audits
    where audits.id = any(array(
      select old.id from audits as old where old.completed_at < ${p.before} order by old.id limit ${p.limit}
    ))
    returning audits.id`.execute(db)
  return rows.length
}
