import { GRANT_WARNING_MS } from '@carillon/api'
import { sql } from 'kysely'

import type { Db, Tx } from '../../db/database.ts'
import { nowOf } from '../../db/now.ts'
import { instantText } from '../../db/parameters.ts'
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

interface Row {
  id: string
  tenant_id: string
  project_id: string
  subject: string
  billing_account_id: string | null
  schedule_id: string | null
  scopes: string[]
  expires_at: Date | null
  revoked_at: Date | null
  revoked_by_subject: string | null
  created_by_subject: string
  created_at: Date
}

const GRANT_COLUMNS = sql`
  grants.id, grants.tenant_id, grants.project_id, grants.subject, grants.billing_account_id, grants.schedule_id,
  grants.scopes, grants.expires_at, grants.revoked_at, grants.revoked_by_subject, grants.created_by_subject, grants.created_at`

/** The grant with this id; undefined also for a grant of another project (I9). */
export async function findGrant(tx: Tx, p: Scope & { id: string }): Promise<Grant | undefined> {
  const { rows } = await sql<Row>`
    select ${GRANT_COLUMNS}
    from carillon.execution_grants as grants
    where grants.id = ${p.id} and grants.tenant_id = ${p.tenantId} and grants.project_id = ${p.projectId}`.execute(tx)
  const [row] = rows
  return row && toGrant(row)
}

/** The grants of a project with these ids, by id (I9). */
export async function findGrants(tx: Tx, p: Scope & { ids: readonly string[] }): Promise<ReadonlyMap<string, Grant>> {
  const { rows } = await sql<Row>`
    select ${GRANT_COLUMNS}
    from carillon.execution_grants as grants
    where grants.id = any(${p.ids}::uuid[]) and grants.tenant_id = ${p.tenantId} and grants.project_id = ${p.projectId}`.execute(
    tx,
  )
  return new Map(rows.map((row) => [row.id, toGrant(row)]))
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
  const { rows } = await sql<Row>`
    insert into carillon.execution_grants as grants (
      id, tenant_id, project_id, subject, billing_account_id, scopes, expires_at, created_by_subject, created_at
    )
    values (
      ${p.id}, ${p.tenantId}, ${p.projectId}, ${p.subject}, ${p.billingAccountId}, ${p.scopes}::text[],
      ${instantText(p.expiresAt)}::timestamptz, ${p.actor}, ${nowOf(p.now)}
    )
    returning ${GRANT_COLUMNS}`.execute(tx)
  const [row] = rows
  if (row === undefined) throw new Error('expected the inserted grant, got no row')
  return toGrant(row)
}

/** A page of a project's grants, newest first. `before` is the last id of the previous page. */
export async function listGrants(tx: Tx, p: Scope & { before: string | null; limit: number }): Promise<Grant[]> {
  const { rows } = await sql<Row>`
    select ${GRANT_COLUMNS}
    from carillon.execution_grants as grants
    where grants.tenant_id = ${p.tenantId} and grants.project_id = ${p.projectId}
      and (${p.before}::uuid is null or grants.id < ${p.before}::uuid)
    order by grants.id desc
    limit ${p.limit}`.execute(tx)
  return rows.map(toGrant)
}

/** Revokes a grant. A revoked grant keeps its first revocation. Undefined also for a grant of another project (I9). */
export async function revokeGrant(
  tx: Tx,
  p: Scope & { id: string; actor: string; now: Date | null },
): Promise<Grant | undefined> {
  const { rows } = await sql<Row>`
    update carillon.execution_grants as grants
    set revoked_by_subject = case when grants.revoked_at is null then ${p.actor} else grants.revoked_by_subject end,
      revoked_at = coalesce(grants.revoked_at, ${nowOf(p.now)})
    where grants.id = ${p.id} and grants.tenant_id = ${p.tenantId} and grants.project_id = ${p.projectId}
    returning ${GRANT_COLUMNS}`.execute(tx)
  const [row] = rows
  return row && toGrant(row)
}

/**
 * Changes the expiry of a grant and clears its warning. A revoked grant keeps its expiry. Undefined also for a grant of another project
 * (I9).
 */
export async function renewGrant(
  tx: Tx,
  p: Scope & { id: string; expiresAt: number | null },
): Promise<Grant | undefined> {
  const { rows } = await sql<Row>`
    update carillon.execution_grants as grants
    set expires_at = case when grants.revoked_at is null then ${instantText(p.expiresAt)}::timestamptz else grants.expires_at end,
      warned_at = null
    where grants.id = ${p.id} and grants.tenant_id = ${p.tenantId} and grants.project_id = ${p.projectId}
    returning ${GRANT_COLUMNS}`.execute(tx)
  const [row] = rows
  return row && toGrant(row)
}

/** Revokes the grants that were created for schedules which are being deleted. */
export async function revokeOwnGrants(
  tx: Tx,
  p: { scheduleIds: readonly string[]; actor: string; now: Date | null },
): Promise<void> {
  await sql`
    update carillon.execution_grants as grants
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

/** Grants that expire within a week and have no warning yet, the earliest first. Uses `execution_grants_expiry_idx`. */
export async function findExpiringGrants(db: Db, p: { now: Date | null; limit: number }): Promise<ExpiringGrant[]> {
  const { rows } = await sql<{
    id: string
    tenant_id: string
    project_id: string
    subject: string
    expires_at: Date
    schedule_ids: string[]
  }>`
    select grants.id, grants.tenant_id, grants.project_id, grants.subject, grants.expires_at,
      array(
        select schedules.id
        from carillon.schedule_revisions as revisions
        join carillon.schedules on schedules.id = revisions.schedule_id and schedules.revision = revisions.revision
        where revisions.tenant_id = grants.tenant_id and revisions.project_id = grants.project_id
          and revisions.grant_id = grants.id and schedules.state in ('active', 'paused')
        order by schedules.id
      ) as schedule_ids
    from carillon.execution_grants as grants
    where grants.revoked_at is null and grants.warned_at is null
      and grants.expires_at > ${nowOf(p.now)}
      and grants.expires_at <= ${nowOf(p.now)} + ${GRANT_WARNING_MS} * interval '1 millisecond'
    order by grants.expires_at, grants.id
    limit ${p.limit}`.execute(db)
  return rows.map((row) => ({
    id: row.id,
    tenantId: row.tenant_id,
    projectId: row.project_id,
    subject: row.subject,
    expiresAt: row.expires_at.getTime(),
    scheduleIds: row.schedule_ids,
  }))
}

/** Marks a grant as warned. False if another worker marked it, or if it was renewed or revoked meanwhile. */
export async function markWarned(tx: Tx, p: { id: string; expiresAt: number; now: Date | null }): Promise<boolean> {
  const { rows } = await sql`
    update carillon.execution_grants as grants
    set warned_at = ${nowOf(p.now)}
    where grants.id = ${p.id} and grants.warned_at is null and grants.revoked_at is null
      and date_trunc('milliseconds', grants.expires_at) = ${new Date(p.expiresAt)}
    returning grants.id`.execute(tx)
  return rows.length === 1
}

function toGrant(row: Row): Grant {
  return {
    id: row.id,
    tenantId: row.tenant_id,
    projectId: row.project_id,
    subject: row.subject,
    billingAccountId: row.billing_account_id,
    scheduleId: row.schedule_id,
    scopes: row.scopes,
    expiresAt: row.expires_at?.getTime() ?? null,
    revokedAt: row.revoked_at?.getTime() ?? null,
    revokedBy: row.revoked_by_subject,
    createdBy: row.created_by_subject,
    createdAt: row.created_at.getTime(),
  }
}
