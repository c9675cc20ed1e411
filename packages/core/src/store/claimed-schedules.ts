import { sql } from 'kysely'

import type { GrantFacts } from '../policy/grant.ts'
import type { OpenRun } from '../policy/overlap.ts'
import type { LockedSchedule } from './agenda.ts'
import { plainArray, quotedArray } from './array-text.ts'
import type { Tx } from './database.ts'
import { isOpen } from './open-runs.ts'
import type { GrantTerms } from './taken-run.ts'

/** A locked schedule with everything that begin decides by. */
export interface ClaimedSchedule extends LockedSchedule {
  /** JSON text: also the key under which its slots are cached. */
  readonly cadence: string
  readonly target: unknown
  /** JSON text. */
  readonly policy: string
  readonly requiredScope: string
  readonly grant: GrantFacts & GrantTerms
  /** Whether the owner, or whom the grant is of, was removed from the project. */
  readonly isAccessLost: boolean
  readonly open: readonly OpenRun[]
}

interface Row {
  ordinal: number
  cadence: string
  target: unknown
  policy: string
  required_scope: string
  is_access_lost: true | null
  grant_version: string | null
  grant_subject: string | null
  grant_billing_account_id: string | null
  grant_schedule_id: string | null
  grant_scopes: string[]
  grant_expires_at: Date | null
  grant_revoked_at: Date | null
  open: { id: string; waits_for: OpenRun['waitsFor']; attempt_count: number }[] | null
}

/**
 * Reads what belongs to locked schedules. A statement of its own, after the one that locked them: its snapshot is younger than
 * the locks, so it cannot take a run for open that was settled before the lock was had. One whose revision is gone is among
 * them, with nothing to read: it must not stay due for ever.
 */
export async function readClaimed(
  tx: Tx,
  p: { readonly schedules: readonly LockedSchedule[] },
): Promise<ClaimedSchedule[]> {
  const { schedules } = p
  const scheduleIds = plainArray(schedules.map(({ id }) => id))
  const { rows } = await sql<Row>`
    select claimed.ordinal::integer as ordinal,
      coalesce(
        revisions.cadence_once, revisions.cadence_cron, revisions.cadence_rrule, revisions.cadence_interval,
        revisions.cadence_frequency
      )::text as cadence,
      revisions.target, revisions.policy::text as policy, revisions.required_scope,
      nullif(exists (
        select
        from carillon.members
        where members.tenant_id = claimed.tenant_id and members.project_id = claimed.project_id
          and members.subject in (claimed.owner_subject, grants.subject) and members.removed_at is not null
      ), false) as is_access_lost,
      grants.xmin as grant_version, grants.subject as grant_subject, grants.billing_account_id as grant_billing_account_id,
      grants.schedule_id as grant_schedule_id, coalesce(grants.scopes, '{}') as grant_scopes,
      grants.expires_at as grant_expires_at, grants.revoked_at as grant_revoked_at, open_runs.open
    from unnest(
      ${scheduleIds}::uuid[],
      ${plainArray(schedules.map(({ revision }) => revision))}::integer[],
      ${plainArray(schedules.map(({ grantId }) => grantId))}::uuid[],
      ${quotedArray(schedules.map(({ tenantId }) => tenantId))}::text[],
      ${quotedArray(schedules.map(({ projectId }) => projectId))}::text[],
      ${quotedArray(schedules.map(({ ownerSubject }) => ownerSubject))}::text[]
    ) with ordinality as claimed(id, revision, grant_id, tenant_id, project_id, owner_subject, ordinal)
    left join carillon.schedule_revisions as revisions
      on revisions.schedule_id = claimed.id and revisions.revision = claimed.revision
    left join carillon.execution_grants as grants
      on grants.id = claimed.grant_id and grants.tenant_id = claimed.tenant_id and grants.project_id = claimed.project_id
    -- All at once: looked for one by one, they would be looked for in every month.
    left join (
      select runs.schedule_id, json_agg(json_build_object(
        'id', runs.id, 'waits_for', runs.waits_for, 'attempt_count', runs.attempt_count
      )) as open
      from carillon.runs
      where runs.schedule_id = any(${scheduleIds}::uuid[]) and ${isOpen()}
      group by runs.schedule_id
    ) as open_runs on open_runs.schedule_id = claimed.id`.execute(tx)
  return rows.flatMap((row) => {
    const schedule = schedules[row.ordinal - 1]
    return schedule === undefined ? [] : [toClaimed(schedule, row)]
  })
}

function toClaimed(schedule: LockedSchedule, row: Row): ClaimedSchedule {
  return {
    ...schedule,
    cadence: row.cadence,
    target: row.target,
    policy: row.policy,
    requiredScope: row.required_scope,
    grant: {
      id: schedule.grantId,
      version: row.grant_version ?? '0',
      // Without a grant there is nobody: its scopes are none, and begin refuses it.
      subject: row.grant_subject ?? '',
      billingAccountId: row.grant_billing_account_id,
      scheduleId: row.grant_schedule_id,
      scopes: row.grant_scopes,
      expiresAt: row.grant_expires_at?.getTime() ?? null,
      revokedAt: row.grant_revoked_at?.getTime() ?? null,
    },
    isAccessLost: row.is_access_lost ?? false,
    open: (row.open ?? []).map(({ id, waits_for, attempt_count }) => ({
      id,
      waitsFor: waits_for,
      attemptCount: attempt_count,
    })),
  }
}
