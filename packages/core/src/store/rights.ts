import { sql } from 'kysely'

import type { GrantFacts } from '../policy/grant.ts'
import type { Db, Tx } from './database.ts'
import { nowOf } from './now.ts'
import type { TakenRun } from './taken-run.ts'
import type { Place } from './walled-transaction.ts'

/** What of a run says by what right it acts. */
export type RunOfGrant = Pick<TakenRun, 'tenantId' | 'projectId' | 'scheduleId' | 'grantId' | 'ownerSubject'>

/** The right of one run, as it is at this moment. */
export interface Right {
  readonly grant: GrantFacts & {
    readonly subject: string
    readonly billingAccountId: string | null
    /** The one schedule that may act by it; null: any of its project. */
    readonly scheduleId: string | null
  }
  /** Whether the owner, or whom the grant is of, was removed from the project. */
  readonly isAccessLost: boolean
  /** Of the tenant; null: what the installation allows. */
  readonly allowedHosts: readonly string[] | null
  /** By the clock that ends grants (I10). */
  readonly now: number
}

interface Row {
  ordinal: number
  subject: string
  billing_account_id: string | null
  scopes: string[]
  expires_at: Date | null
  revoked_at: Date | null
  schedule_id: string | null
  is_access_lost: boolean
  allowed_hosts: string[] | null
  now: Date
}

/**
 * The rights of runs, in their order; undefined where the project of a run has no such grant (I9). One statement for a whole
 * batch, and a snapshot of its own: what was revoked before it began is seen.
 */
export async function readRights(
  db: Db,
  p: { runs: readonly RunOfGrant[]; now: Date | null },
): Promise<(Right | undefined)[]> {
  const { rows } = await sql<Row>`
    select run.ordinal::int as ordinal, grants.subject, grants.billing_account_id, grants.scopes, grants.expires_at,
      grants.revoked_at, grants.schedule_id, lost.is_lost as is_access_lost, tenants.allowed_hosts,
      ${nowOf(p.now)} as now
    from unnest(
      ${p.runs.map((run) => run.grantId)}::uuid[],
      ${p.runs.map((run) => run.tenantId)}::text[],
      ${p.runs.map((run) => run.projectId)}::text[],
      ${p.runs.map((run) => run.ownerSubject)}::text[]
    ) with ordinality as run(grant_id, tenant_id, project_id, owner_subject, ordinal)
    join carillon.execution_grants as grants
      on grants.id = run.grant_id and grants.tenant_id = run.tenant_id and grants.project_id = run.project_id
    cross join lateral (
      select exists (
        select
        from carillon.members
        where members.tenant_id = run.tenant_id and members.project_id = run.project_id
          and members.subject in (run.owner_subject, grants.subject) and members.removed_at is not null
      ) as is_lost
    ) as lost
    left join carillon.tenants on tenants.tenant_id = run.tenant_id`.execute(db)
  const rights = new Map(rows.map((row) => [row.ordinal, toRight(row)]))
  return p.runs.map((_run, index) => rights.get(index + 1))
}

function toRight(row: Row): Right {
  return {
    grant: {
      subject: row.subject,
      billingAccountId: row.billing_account_id,
      scopes: row.scopes,
      expiresAt: row.expires_at?.getTime() ?? null,
      revokedAt: row.revoked_at?.getTime() ?? null,
      scheduleId: row.schedule_id,
    },
    isAccessLost: row.is_access_lost,
    allowedHosts: row.allowed_hosts,
    now: row.now.getTime(),
  }
}

/** Of these subjects one that was removed from a project; undefined if all may act. */
export async function findRemoved(tx: Tx, p: Place & { subjects: readonly string[] }): Promise<string | undefined> {
  const { rows } = await sql<{ subject: string }>`
    select members.subject
    from carillon.members
    where members.tenant_id = ${p.tenantId} and members.project_id = ${p.projectId}
      and members.subject = any(${p.subjects}::text[]) and members.removed_at is not null
    limit 1`.execute(tx)
  return rows[0]?.subject
}
