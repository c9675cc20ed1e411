import type { Role } from '@carillon/api'
import { sql } from 'kysely'

import type { Tx } from '../../db/database.ts'
import { nowOf } from '../../db/now.ts'
import type { Scope } from '../../kernel/scope.ts'

/* `p.now` is null in production: Postgres' clock decides. Tests pass an instant. */

/** A subject that a project has a role for. Instants are epoch milliseconds. */
export interface Member {
  /** Typed: `user:alice`. */
  readonly subject: string
  /** The strongest role that the subject may use, even if its credential has a stronger one. */
  readonly role: Role
  /** The subject that added it or last changed its role. */
  readonly addedBy: string
  readonly addedAt: number
  readonly removedBy: string | null
  /** Null unless it was removed. A removed member has no access. */
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

/** Adds a member, changes its role, or restores it after a removal. */
export async function saveMember(
  tx: Tx,
  p: Scope & { subject: string; role: Role; actor: string; now: Date | null },
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
  return savedOf(rows)
}

/**
 * Removes a member. A removed member keeps its first removal. A subject without a row gets one, because most subjects come from an
 * identity provider and are never added. It is one statement, so it does not conflict with a concurrent `saveMember`.
 */
export async function removeMember(
  tx: Tx,
  p: Scope & { subject: string; actor: string; now: Date | null },
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
  return savedOf(rows)
}

/** A member, also if it was removed; undefined also for a member of another project (I9). */
export async function findMember(tx: Tx, p: Scope & { subject: string }): Promise<Member | undefined> {
  const { rows } = await sql<Row>`
    select ${MEMBER_COLUMNS}
    from carillon.members
    where members.tenant_id = ${p.tenantId} and members.project_id = ${p.projectId}
      and members.subject = ${p.subject}`.execute(tx)
  const [row] = rows
  return row && toMember(row)
}

/** A page of a project's members, removed ones too, sorted by subject. `after` is the last subject of the previous page. */
export async function listMembers(tx: Tx, p: Scope & { after: string | null; limit: number }): Promise<Member[]> {
  const { rows } = await sql<Row>`
    select ${MEMBER_COLUMNS}
    from carillon.members
    where members.tenant_id = ${p.tenantId} and members.project_id = ${p.projectId}
      and (${p.after}::text is null or members.subject > ${p.after}::text)
    order by members.subject
    limit ${p.limit}`.execute(tx)
  return rows.map(toMember)
}

function savedOf([row]: readonly Row[]): Member {
  if (row === undefined) throw new Error('expected the saved member, got no row')
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

/** Those of the given subjects that were removed from the project. */
export async function listRemoved(tx: Tx, p: Scope & { subjects: readonly string[] }): Promise<ReadonlySet<string>> {
  const { rows } = await sql<{ subject: string }>`
    select members.subject
    from carillon.members
    where members.tenant_id = ${p.tenantId} and members.project_id = ${p.projectId}
      and members.subject = any(${p.subjects}::text[]) and members.removed_at is not null`.execute(tx)
  return new Set(rows.map(({ subject }) => subject))
}
