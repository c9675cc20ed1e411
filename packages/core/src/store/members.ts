import { sql } from 'kysely'

import type { Role } from '../role.ts'
import type { Tx } from './database.ts'
import { nowOf } from './now.ts'
import type { Place } from './walled-transaction.ts'

/** Somebody of whom a project knows. Instants are epoch milliseconds. */
export interface Member {
  /** Typed: `user:alice`. */
  readonly subject: string
  /** More than this it may not, whatever its credential says. */
  readonly role: Role
  /** Who put it as it is, and when. */
  readonly addedBy: string
  readonly addedAt: number
  readonly removedBy: string | null
  /** Since when it may do nothing; null unless it was removed. */
  readonly removedAt: number | null
}

interface Row {
  subject: string
  role: Role
  added_by_subject: string
  added_at: Date
  removed_by_subject: string | null
  removed_at: Date | null
}

const MEMBER_COLUMNS = sql`
  members.subject, members.role, members.added_by_subject, members.added_at, members.removed_by_subject,
  members.removed_at`

/** Adds a member, changes its role, or takes it back after it was removed. */
export async function saveMember(
  tx: Tx,
  p: Place & { subject: string; role: Role; actor: string; now: Date | null },
): Promise<Member> {
  const { rows } = await sql<Row>`
    insert into carillon.members (tenant_id, project_id, subject, role, added_by_subject, added_at)
    values (${p.tenantId}, ${p.projectId}, ${p.subject}, ${p.role}::carillon.role, ${p.actor}, ${nowOf(p.now)})
    on conflict (tenant_id, project_id, subject) do update
    set role = excluded.role,
      added_by_subject = excluded.added_by_subject,
      added_at = excluded.added_at,
      removed_by_subject = null,
      removed_at = null
    returning ${MEMBER_COLUMNS}`.execute(tx)
  return taken(rows)
}

/**
 * Removes somebody; the first removal stays. Who had no row gets one: members come from elsewhere, and most are never listed.
 * In one statement: who is put at the same time is put before or after, and not refused.
 */
export async function removeMember(
  tx: Tx,
  p: Place & { subject: string; actor: string; now: Date | null },
): Promise<Member> {
  const { rows } = await sql<Row>`
    insert into carillon.members (
      tenant_id, project_id, subject, role, added_by_subject, added_at, removed_by_subject, removed_at
    )
    values (
      ${p.tenantId}, ${p.projectId}, ${p.subject}, 'member', ${p.actor}, ${nowOf(p.now)}, ${p.actor}, ${nowOf(p.now)}
    )
    on conflict (tenant_id, project_id, subject) do update
    set removed_by_subject = coalesce(members.removed_by_subject, excluded.removed_by_subject),
      removed_at = coalesce(members.removed_at, excluded.removed_at)
    returning ${MEMBER_COLUMNS}`.execute(tx)
  return taken(rows)
}

/** A member, removed ones too; undefined also if it is another project's (I9). */
export async function findMember(tx: Tx, p: Place & { subject: string }): Promise<Member | undefined> {
  const { rows } = await sql<Row>`
    select ${MEMBER_COLUMNS}
    from carillon.members
    where members.tenant_id = ${p.tenantId} and members.project_id = ${p.projectId}
      and members.subject = ${p.subject}`.execute(tx)
  const [row] = rows
  return row && toMember(row)
}

/** A page of a project's members by subject, removed ones too. `after` is the last subject of the page before. */
export async function listMembers(tx: Tx, p: Place & { after: string | null; limit: number }): Promise<Member[]> {
  const { rows } = await sql<Row>`
    select ${MEMBER_COLUMNS}
    from carillon.members
    where members.tenant_id = ${p.tenantId} and members.project_id = ${p.projectId}
      and (${p.after}::text is null or members.subject > ${p.after}::text)
    order by members.subject
    limit ${p.limit}`.execute(tx)
  return rows.map(toMember)
}

function taken([row]: readonly Row[]): Member {
  if (row === undefined) throw new Error('Postgres returned no row for a member that it took')
  return toMember(row)
}

function toMember(row: Row): Member {
  return {
    subject: row.subject,
    role: row.role,
    addedBy: row.added_by_subject,
    addedAt: row.added_at.getTime(),
    removedBy: row.removed_by_subject,
    removedAt: row.removed_at?.getTime() ?? null,
  }
}

/** Of these subjects those that were removed from a project. */
export async function listRemoved(tx: Tx, p: Place & { subjects: readonly string[] }): Promise<ReadonlySet<string>> {
  const { rows } = await sql<{ subject: string }>`
    select members.subject
    from carillon.members
    where members.tenant_id = ${p.tenantId} and members.project_id = ${p.projectId}
      and members.subject = any(${p.subjects}::text[]) and members.removed_at is not null`.execute(tx)
  return new Set(rows.map(({ subject }) => subject))
}
