import { sql } from 'kysely'

import type { Caller } from '../caller.ts'
import type { GrantFacts } from '../policy/grant.ts'
import type { Tx } from './database.ts'
import { nowOf } from './now.ts'

/** A grant as its users see it. Instants are epoch milliseconds. */
export interface Grant extends GrantFacts {
  readonly id: string
  readonly tenantId: string
  readonly projectId: string
  /** Who executes by it. */
  readonly subject: string
  /** Who pays. */
  readonly billingAccountId: string | null
  /** The one schedule that it was made for and ends with; null if any may be given it. */
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

type Within = Pick<Caller, 'tenantId' | 'projectId'>

const GRANT_COLUMNS = sql`
  grants.id, grants.tenant_id, grants.project_id, grants.subject, grants.billing_account_id, grants.schedule_id,
  grants.scopes,  grants.expires_at, grants.revoked_at, grants.revoked_by_subject, grants.created_by_subject, grants.created_at`

/** A grant; undefined also if it is another project's (I9). */
export async function findGrant(tx: Tx, p: Within & { id: string }): Promise<Grant | undefined> {
  const { rows } = await sql<Row>`
    select ${GRANT_COLUMNS}
    from carillon.execution_grants as grants
    where grants.id = ${p.id} and grants.tenant_id = ${p.tenantId} and grants.project_id = ${p.projectId}`.execute(tx)
  const [row] = rows
  return row && toGrant(row)
}

/** Those of a project's grants that are there, by their ids (I9). */
export async function findGrants(tx: Tx, p: Within & { ids: readonly string[] }): Promise<ReadonlyMap<string, Grant>> {
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
  p: Within & {
    id: string
    subject: string
    scopes: readonly string[]
    billingAccountId: string | null
    expiresAt: number | null
    actor: string
    now: Date | null
  },
): Promise<Grant> {
  const expiresAt = p.expiresAt === null ? null : new Date(p.expiresAt).toISOString()
  const { rows } = await sql<Row>`
    insert into carillon.execution_grants as grants (
      id, tenant_id, project_id, subject, billing_account_id, scopes, expires_at, created_by_subject, created_at
    )
    values (
      ${p.id}, ${p.tenantId}, ${p.projectId}, ${p.subject}, ${p.billingAccountId}, ${p.scopes}::text[],
      ${expiresAt}::timestamptz, ${p.actor}, ${nowOf(p.now)}
    )
    returning ${GRANT_COLUMNS}`.execute(tx)
  const [row] = rows
  if (row === undefined) throw new Error('Postgres returned no row for a grant that it took')
  return toGrant(row)
}

/** A page of a project's grants, the newest first. `before` is the last id of the page before. */
export async function listGrants(tx: Tx, p: Within & { before: string | null; limit: number }): Promise<Grant[]> {
  const { rows } = await sql<Row>`
    select ${GRANT_COLUMNS}
    from carillon.execution_grants as grants
    where grants.tenant_id = ${p.tenantId} and grants.project_id = ${p.projectId}
      and (${p.before}::uuid is null or grants.id < ${p.before}::uuid)
    order by grants.id desc
    limit ${p.limit}`.execute(tx)
  return rows.map(toGrant)
}

/** Revokes a grant; the first revocation stays. Undefined also if it is another project's (I9). */
export async function revokeGrant(
  tx: Tx,
  p: Within & { id: string; actor: string; now: Date | null },
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
 * Lets a grant last longer, or for ever, and forgets that its end was warned of. A revoked one stays as it is. Undefined also
 * if it is another project's (I9).
 */
export async function renewGrant(
  tx: Tx,
  p: Within & { id: string; expiresAt: number | null },
): Promise<Grant | undefined> {
  const expiresAt = p.expiresAt === null ? null : new Date(p.expiresAt).toISOString()
  const { rows } = await sql<Row>`
    update carillon.execution_grants as grants
    set expires_at = case when grants.revoked_at is null then ${expiresAt}::timestamptz else grants.expires_at end,
      warned_at = null
    where grants.id = ${p.id} and grants.tenant_id = ${p.tenantId} and grants.project_id = ${p.projectId}
    returning ${GRANT_COLUMNS}`.execute(tx)
  const [row] = rows
  return row && toGrant(row)
}

/** Ends the grants that were made for schedules, which are no more. */
export async function revokeOwnGrants(
  tx: Tx,
  p: { scheduleIds: readonly string[]; actor: string; now: Date | null },
): Promise<void> {
  await sql`
    update carillon.execution_grants as grants
    set revoked_by_subject = ${p.actor}, revoked_at = ${nowOf(p.now)}
    where grants.schedule_id = any(${p.scheduleIds}::uuid[]) and grants.revoked_at is null`.execute(tx)
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
