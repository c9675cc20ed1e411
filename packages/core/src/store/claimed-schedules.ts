import { sql } from 'kysely'

import type { GrantFacts } from '../policy/grant.ts'
import type { OpenRun } from '../policy/overlap.ts'
import { plainArray } from './array-text.ts'
import type { Tx } from './database.ts'
import { isOpen } from './open-runs.ts'
import type { GrantTerms } from './taken-run.ts'

/** A locked schedule with everything that begin decides by. */
export interface ClaimedSchedule {
  readonly id: string
  readonly tenantId: string
  readonly projectId: string
  readonly targetKind: string
  readonly revision: number
  readonly nextSlotAt: number
  readonly excludedSlots: readonly number[]
  readonly autoPauseThreshold: number
  readonly consecutiveFailures: number
  /** JSON text: also the key under which its slots are cached. */
  readonly cadence: string
  readonly target: unknown
  /** JSON text. */
  readonly policy: string
  readonly ownerSubject: string
  readonly requiredScope: string
  readonly grant: GrantFacts & GrantTerms
  /** Whether the owner, or whom the grant is of, was removed from the project. */
  readonly isAccessLost: boolean
  readonly open: readonly (OpenRun & { readonly scheduledFor: number })[]
}

interface Row {
  id: string
  tenant_id: string
  project_id: string
  target_kind: string
  revision: number
  next_slot_at: Date
  excluded_slots: Date[] | null
  auto_pause_threshold: number
  consecutive_failures: number
  cadence: string
  target: unknown
  policy: string
  owner_subject: string
  grant_id: string
  required_scope: string
  is_access_lost: boolean
  grant_version: string | null
  grant_subject: string | null
  grant_billing_account_id: string | null
  grant_schedule_id: string | null
  grant_scopes: string[]
  grant_expires_at: Date | null
  grant_revoked_at: Date | null
  open: { id: string; state: OpenRun['state']; trigger: OpenRun['trigger']; scheduled_for: number }[] | null
}

/**
 * Reads locked schedules. A statement of its own, after the one that locked them: its snapshot is younger than the locks, so
 * it cannot take a run for open that was settled before the lock was had. One whose revision is gone is among them, with
 * nothing to read: it must not stay due for ever.
 */
export async function readClaimed(tx: Tx, p: { scheduleIds: readonly string[] }): Promise<ClaimedSchedule[]> {
  const scheduleIds = plainArray(p.scheduleIds)
  const { rows } = await sql<Row>`
    select schedules.id, schedules.tenant_id, schedules.project_id, schedules.target_kind, schedules.revision,
      schedules.next_slot_at, schedules.excluded_slots, schedules.auto_pause_threshold, schedules.consecutive_failures,
      coalesce(
        revisions.cadence_once, revisions.cadence_cron, revisions.cadence_rrule, revisions.cadence_interval,
        revisions.cadence_frequency
      )::text as cadence,
      revisions.target, revisions.policy::text as policy,
      schedules.owner_subject, schedules.grant_id, revisions.required_scope,
      exists (
        select
        from carillon.members
        where members.tenant_id = schedules.tenant_id and members.project_id = schedules.project_id
          and members.subject in (schedules.owner_subject, grants.subject) and members.removed_at is not null
      ) as is_access_lost,
      grants.xmin as grant_version, grants.subject as grant_subject, grants.billing_account_id as grant_billing_account_id,
      grants.schedule_id as grant_schedule_id, coalesce(grants.scopes, '{}') as grant_scopes,
      grants.expires_at as grant_expires_at, grants.revoked_at as grant_revoked_at, open_runs.open
    from unnest(${scheduleIds}::uuid[]) as claimed(id)
    join carillon.schedules on schedules.id = claimed.id
    left join carillon.schedule_revisions as revisions
      on revisions.schedule_id = schedules.id and revisions.revision = schedules.revision
    left join carillon.execution_grants as grants
      on grants.id = schedules.grant_id and grants.tenant_id = schedules.tenant_id
        and grants.project_id = schedules.project_id
    -- All at once: looked for one by one, they would be looked for in every month.
    left join (
      select runs.schedule_id, json_agg(json_build_object(
        'id', runs.id, 'state', runs.state, 'trigger', runs.trigger,
        'scheduled_for', (extract(epoch from runs.scheduled_for) * 1000)::bigint
      )) as open
      from carillon.runs
      where runs.schedule_id = any(${scheduleIds}::uuid[]) and ${isOpen()}
      group by runs.schedule_id
    ) as open_runs on open_runs.schedule_id = schedules.id`.execute(tx)
  return rows.map(toClaimed)
}

function toClaimed(row: Row): ClaimedSchedule {
  return {
    id: row.id,
    tenantId: row.tenant_id,
    projectId: row.project_id,
    targetKind: row.target_kind,
    revision: row.revision,
    nextSlotAt: row.next_slot_at.getTime(),
    excludedSlots: row.excluded_slots?.map((slot) => slot.getTime()) ?? [],
    autoPauseThreshold: row.auto_pause_threshold,
    consecutiveFailures: row.consecutive_failures,
    cadence: row.cadence,
    target: row.target,
    policy: row.policy,
    ownerSubject: row.owner_subject,
    requiredScope: row.required_scope,
    grant: {
      id: row.grant_id,
      version: row.grant_version ?? '0',
      // Without a grant there is nobody: its scopes are none, and begin refuses it.
      subject: row.grant_subject ?? '',
      billingAccountId: row.grant_billing_account_id,
      scheduleId: row.grant_schedule_id,
      scopes: row.grant_scopes,
      expiresAt: row.grant_expires_at?.getTime() ?? null,
      revokedAt: row.grant_revoked_at?.getTime() ?? null,
    },
    isAccessLost: row.is_access_lost,
    open: (row.open ?? []).map(({ id, state, trigger, scheduled_for }) => ({
      id,
      state,
      trigger,
      scheduledFor: scheduled_for,
    })),
  }
}
