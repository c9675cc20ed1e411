import { sql } from 'kysely'

import type { Db, Tx } from './database.ts'
import { nowOf } from './now.ts'

/** A grant that ends soon, and which schedules end with it. */
export interface ExpiringGrant {
  readonly id: string
  readonly tenantId: string
  readonly projectId: string
  readonly subject: string
  readonly expiresAt: number
  /** Active and paused ones that act by it; perhaps none. */
  readonly scheduleIds: readonly string[]
}

/** How long before its end a grant is warned of. */
export const GRANT_WARNED_BEFORE_MS = 7 * 86_400_000

/** Grants that end within a week and were not warned of, the earliest first. Serves `execution_grants_expiry_idx`. */
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
      and grants.expires_at <= ${nowOf(p.now)} + ${GRANT_WARNED_BEFORE_MS} * interval '1 millisecond'
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

/** Remembers that a grant was warned of; false if somebody else did, or if it was renewed or revoked meanwhile. */
export async function markWarned(tx: Tx, p: { id: string; expiresAt: number; now: Date | null }): Promise<boolean> {
  const { rows } = await sql`
    update carillon.execution_grants as grants
    set warned_at = ${nowOf(p.now)}
    where grants.id = ${p.id} and grants.warned_at is null and grants.revoked_at is null
      and date_trunc('milliseconds', grants.expires_at) = ${new Date(p.expiresAt)}
    returning grants.id`.execute(tx)
  return rows.length === 1
}
