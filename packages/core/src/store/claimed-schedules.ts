import { sql } from 'kysely'

import type { OpenRun } from '../policy/overlap.ts'
import type { Tx } from './database.ts'

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
  readonly grant: {
    readonly expiresAt: number | null
    readonly revokedAt: number | null
    readonly scopes: string[]
  } | null
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
  grant_scopes: string[] | null
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
  const { rows } = await sql<Row>`
    select schedules.id, schedules.tenant_id, schedules.project_id, schedules.target_kind, schedules.revision,
      schedules.next_slot_at, schedules.excluded_slots, schedules.auto_pause_threshold, schedules.consecutive_failures,
      coalesce(
        revisions.cadence_once, revisions.cadence_cron, revisions.cadence_rrule, revisions.cadence_interval,
        revisions.cadence_frequency
      )::text as cadence,
      revisions.target, revisions.policy::text as policy,
      grants.scopes as grant_scopes, grants.expires_at as grant_expires_at, grants.revoked_at as grant_revoked_at,
      (
        select json_agg(json_build_object(
          'id', runs.id, 'state', runs.state, 'trigger', runs.trigger,
          'scheduled_for', (extract(epoch from runs.scheduled_for) * 1000)::bigint
        ))
        from carillon.runs
        where runs.schedule_id = schedules.id and runs.state in ('pending', 'running', 'retrying')
      ) as open
    from unnest(${p.scheduleIds}::uuid[]) as claimed(id)
    join carillon.schedules on schedules.id = claimed.id
    left join carillon.schedule_revisions as revisions
      on revisions.schedule_id = schedules.id and revisions.revision = schedules.revision
    left join carillon.execution_grants as grants on grants.id = schedules.grant_id`.execute(tx)
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
    grant:
      row.grant_scopes === null
        ? null
        : {
            scopes: row.grant_scopes,
            expiresAt: row.grant_expires_at?.getTime() ?? null,
            revokedAt: row.grant_revoked_at?.getTime() ?? null,
          },
    open: (row.open ?? []).map(({ id, state, trigger, scheduled_for }) => ({
      id,
      state,
      trigger,
      scheduledFor: scheduled_for,
    })),
  }
}
