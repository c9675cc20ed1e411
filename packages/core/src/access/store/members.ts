import { ROLES, type Role } from '@carillon/api'

import { columns, instant, text, word } from '../../db/columns.ts'
import type { Tx } from '../../db/database.ts'
import { nowOf } from '../../db/now.ts'
import { sql } from '../../db/sql.ts'
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

const MEMBER_COLUMNS = columns('members', {
  subject: text,
  role: word('role', ROLES),
  addedBy: text.as(sql`members.added_by_subject`),
  addedAt: instant,
  removedBy: text.orNull.as(sql`members.removed_by_subject`),
  removedAt: instant.orNull,
})

/** Adds a member, changes its role, or restores it after a removal. */
export async function saveMember(
  tx: Tx,
  p: Scope & { subject: string; role: Role; actor: string; now: Date | null },
): Promise<Member> {
  const rows = await sql`
    insert into members (tenant_id, project_id, subject, role, added_by_subject, added_at)
    values (${p.tenantId}, ${p.projectId}, ${p.subject}, ${p.role}::role, ${p.actor}, ${nowOf(p.now)})
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
  const rows = await sql`
    insert into members (
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
  const [member] = await sql`
    select ${MEMBER_COLUMNS}
    from members
    where members.tenant_id = ${p.tenantId} and members.project_id = ${p.projectId}
      and members.subject = ${p.subject}`.execute(tx)
  return member
}

/** A page of a project's members, removed ones too, sorted by subject. `after` is the last subject of the previous page. */
export async function listMembers(tx: Tx, p: Scope & { after: string | null; limit: number }): Promise<Member[]> {
  return sql`
    select ${MEMBER_COLUMNS}
    from members
    where members.tenant_id = ${p.tenantId} and members.project_id = ${p.projectId}
      and (${p.after}::text is null or members.subject > ${p.after}::text)
    order by members.subject
    limit ${p.limit}`.execute(tx)
}

function savedOf([member]: readonly Member[]): Member {
  if (member === undefined) throw new Error('expected the saved member, got no row')
  return member
}

/** Those of the given subjects that were removed from the project. */
export async function listRemoved(tx: Tx, p: Scope & { subjects: readonly string[] }): Promise<ReadonlySet<string>> {
  const rows = await sql`
    select ${columns('members', { subject: text })}
    from members
    where members.tenant_id = ${p.tenantId} and members.project_id = ${p.projectId}
      and members.subject = any(${p.subjects}::text[]) and members.removed_at is not null`.execute(tx)
  return new Set(rows.map(({ subject }) => subject))
}
