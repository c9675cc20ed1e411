import { GRANT_WARNING_MS } from '@carillon/api'

import { columns, instant, text, uuid } from '../../db/columns.ts'
import type { Db, Tx } from '../../db/database.ts'
import { nowOf } from '../../db/now.ts'
import { instantText } from '../../db/parameters.ts'
import { sql } from '../../db/sql.ts'
import type { Scope } from '../../kernel/scope.ts'
import type { GrantFacts } from '../../policy/grant.ts'

/* `p.now` is null in production: Postgres' clock decides. Tests pass an instant. */

/** A grant. Instants are epoch milliseconds. */
export interface Grant extends GrantFacts {
  readonly id: string
  readonly tenantId: string
  readonly projectId: string
  /** The subject that runs act for. */
  readonly subject: string
  /** The account that pays. */
  readonly billingAccountId: string | null
  /** The schedule that the grant was created for and ends with; null if schedules may share it. */
  readonly scheduleId: string | null
  readonly revokedBy: string | null
  readonly createdBy: string
  readonly createdAt: number
}

const GRANT_COLUMNS = columns('grants', {
  id: uuid,
  tenantId: text,
  projectId: text,
  subject: text,
  billingAccountId: text.orNull,
  scheduleId: uuid.orNull,
  scopes: text.list,
  expiresAt: instant.orNull,
  revokedAt: instant.orNull,
  revokedBy: text.orNull.as(sql`grants.revoked_by_subject`),
  createdBy: text.as(sql`grants.created_by_subject`),
  createdAt: instant,
})

/** The grant with this id; undefined also for a grant of another project (I9). */
export async function findGrant(tx: Tx, p: Scope & { id: string }): Promise<Grant | undefined> {
  const [grant] = await sql`
    select ${GRANT_COLUMNS}
    from execution_grants as grants
    where grants.id = ${p.id} and grants.tenant_id = ${p.tenantId} and grants.project_id = ${p.projectId}`.execute(tx)
  return grant
}

/** The grants of a project with these ids, by id (I9). */
export async function findGrants(tx: Tx, p: Scope & { ids: readonly string[] }): Promise<ReadonlyMap<string, Grant>> {
  const grants = await sql`
    select ${GRANT_COLUMNS}
    from execution_grants as grants
    where grants.id = any(${p.ids}::uuid[]) and grants.tenant_id = ${p.tenantId} and grants.project_id = ${p.projectId}`.execute(
    tx,
  )
  return new Map(grants.map((grant) => [grant.id, grant]))
}

export async function insertGrant(
  tx: Tx,
  p: Scope & {
    id: string
    subject: string
    scopes: readonly string[]
    billingAccountId: string | null
    expiresAt: number | null
    actor: string
    now: Date | null
  },
): Promise<Grant> {
  const [grant] = await sql`
    insert into execution_grants as grants (
      id, tenant_id, project_id, subject, billing_account_id, scopes, expires_at, created_by_subject, created_at
    )
    values (
      ${p.id}, ${p.tenantId}, ${p.projectId}, ${p.subject}, ${p.billingAccountId}, ${p.scopes}::text[],
      ${instantText(p.expiresAt)}::timestamptz, ${p.actor}, ${nowOf(p.now)}
    )
    returning ${GRANT_COLUMNS}`.execute(tx)
  if (grant === undefined) throw new Error('expected the inserted grant, got no row')
  return grant
}

/** A page of a project's grants, newest first. `before` is the last id of the previous page. */
export async function listGrants(tx: Tx, p: Scope & { before: string | null; limit: number }): Promise<Grant[]> {
  return sql`
    select ${GRANT_COLUMNS}
    from execution_grants as grants
    where grants.tenant_id = ${p.tenantId} and grants.project_id = ${p.projectId}
      and (${p.before}::uuid is null or grants.id < ${p.before}::uuid)
    order by grants.id desc
    limit ${p.limit}`.execute(tx)
}

/** Revokes a grant. A revoked grant keeps its first revocation. Undefined also for a grant of another project (I9). */
export async function revokeGrant(
  tx: Tx,
  p: Scope & { id: string; actor: string; now: Date | null },
): Promise<Grant | undefined> {
  const [grant] = await sql`
    update execution_grants as grants
    set revoked_by_subject = case when grants.revoked_at is null then ${p.actor} else grants.revoked_by_subject end,
      revoked_at = coalesce(grants.revoked_at, ${nowOf(p.now)})
    where grants.id = ${p.id} and grants.tenant_id = ${p.tenantId} and grants.project_id = ${p.projectId}
    returning ${GRANT_COLUMNS}`.execute(tx)
  return grant
}

/**
 * Changes the expiry of a grant and clears its warning. A revoked grant keeps its expiry. Undefined also for a grant of another project
 * (I9).
 */
export async function renewGrant(
  tx: Tx,
  p: Scope & { id: string; expiresAt: number | null },
): Promise<Grant | undefined> {
  const [grant] = await sql`
    update execution_grants as grants
    set expires_at = case when grants.revoked_at is null then ${instantText(p.expiresAt)}::timestamptz else grants.expires_at end,
      warned_at = null
    where grants.id = ${p.id} and grants.tenant_id = ${p.tenantId} and grants.project_id = ${p.projectId}
    returning ${GRANT_COLUMNS}`.execute(tx)
  return grant
}

/** Revokes the grants that were created for schedules which are being deleted. */
export async function revokeOwnGrants(
  tx: Tx,
  p: { scheduleIds: readonly string[]; actor: string; now: Date | null },
): Promise<void> {
  await sql`
    update execution_grants as grants
    set revoked_by_subject = ${p.actor}, revoked_at = ${nowOf(p.now)}
    where grants.schedule_id = any(${p.scheduleIds}::uuid[]) and grants.revoked_at is null`.execute(tx)
}

/** A grant that expires soon, and the schedules that act by it. */
export interface ExpiringGrant {
  readonly id: string
  readonly tenantId: string
  readonly projectId: string
  readonly subject: string
  readonly expiresAt: number
  /** The active and paused schedules that act by the grant; may be empty. */
  readonly scheduleIds: readonly string[]
}

const EXPIRING_COLUMNS = columns('grants', {
  id: uuid,
  tenantId: text,
  projectId: text,
  subject: text,
  expiresAt: instant.present,
  scheduleIds: uuid.list.as(sql`array(
    select schedules.id
    from schedule_revisions as revisions
    join schedules on schedules.id = revisions.schedule_id and schedules.revision = revisions.revision
    where revisions.tenant_id = grants.tenant_id and revisions.project_id = grants.project_id
      and revisions.grant_id = grants.id and schedules.state in ('active', 'paused')
    order by schedules.id
  )`),
})

/** Grants that expire within a week and have no warning yet, the earliest first. Uses `execution_grants_expiry_idx`. */
export async function findExpiringGrants(db: Db, p: { now: Date | null; limit: number }): Promise<ExpiringGrant[]> {
  return sql`
    select ${EXPIRING_COLUMNS}
    from execution_grants as grants
    where grants.revoked_at is null and grants.warned_at is null
      and grants.expires_at > ${nowOf(p.now)}
      and grants.expires_at <= ${nowOf(p.now)} + ${GRANT_WARNING_MS} * interval '1 millisecond'
    order by grants.expires_at, grants.id
    limit ${p.limit}`.execute(db)
}

/** Marks a grant as warned. False if another worker marked it, or if it was renewed or revoked meanwhile. */
export async function markWarned(tx: Tx, p: { id: string; expiresAt: number; now: Date | null }): Promise<boolean> {
  const rows = await sql`
    update execution_grants as grants
    set warned_at = ${nowOf(p.now)}
    where grants.id = ${p.id} and grants.warned_at is null and grants.revoked_at is null
      and date_trunc('milliseconds', grants.expires_at) = ${new Date(p.expiresAt)}
    returning grants.id`.execute(tx)
  return rows.length === 1
}
