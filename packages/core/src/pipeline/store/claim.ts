import { sql } from 'kysely'

import { CADENCE_COLUMN } from '../../db/columns.ts'
import type { Tx } from '../../db/database.ts'
import { isOpen } from '../../db/indexed-sql.ts'
import { nowOf } from '../../db/now.ts'
import { plainArray, quotedArray } from '../../db/parameters.ts'
import type { GrantTerms } from '../../ledger/held-run.ts'
import type { GrantFacts } from '../../policy/grant.ts'
import type { OpenRun } from '../../policy/overlap.ts'
import { columnsOf, SCHEDULES_OF_LANE, type LaneFrom, type LanePosition } from './look.ts'

/** A due schedule whose row this transaction has locked, with everything that BEGIN decides by. */
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
  readonly ownerSubject: string
  readonly grantId: string
  /** JSON text: also the key under which its slots are cached. */
  readonly cadence: string
  readonly target: unknown
  /** JSON text. */
  readonly policy: string
  readonly requiredScope: string
  readonly grant: GrantFacts & GrantTerms
  /** True if the owner or the grant's subject was removed from the project. */
  readonly isAccessLost: boolean
  readonly open: readonly OpenRun[]
}

/** The part of a claimed schedule that its own row holds. */
type LockedSchedule = Omit<
  ClaimedSchedule,
  'cadence' | 'target' | 'policy' | 'requiredScope' | 'grant' | 'isAccessLost' | 'open'
>

interface LockedRow {
  now: Date
  ordinal: number
  id: string
  due_at: Date
  tenant_id: string
  project_id: string
  target_kind: string
  revision: number
  spread_slot_at: Date | null
  excluded_slots: Date[] | null
  auto_pause_threshold: number
  consecutive_failures: number
  owner_subject: string
  grant_id: string
}

export interface Claim {
  /**
   * The time by which policies decide: the start of the transaction, or the slot's instant if that is later (`isAhead`). Epoch
   * milliseconds; 0 if nothing was claimed.
   */
  readonly now: number
  readonly schedules: readonly LockedSchedule[]
  /** The last claimed position of each lane that had something to claim. */
  readonly last: ReadonlyMap<string, LanePosition>
}

/** A slot is claimed at most this long before its instant. A worker that claims earlier, because its clock is wrong, gets nothing (I10). */
const AHEAD_MAX_MS = 100

/**
 * CLAIM: locks due schedules for the rest of the transaction, at most `perLane` of each lane, and returns their rows as they are
 * under the lock. Skips rows that another transaction has locked. A worker without a live lease gets nothing: no rescuer
 * could find its runs.
 * @param p.now the instant of slots that are not due yet, if `isAhead`; otherwise null in production: Postgres' clock decides
 */
export async function claimDue(
  tx: Tx,
  p: { lanes: readonly LaneFrom[]; perLane: number; workerId: string; now: Date | null; isAhead?: boolean },
): Promise<Claim> {
  const notTooFar =
    p.isAhead === true ? sql`and ${p.now} <= clock_timestamp() + ${AHEAD_MAX_MS} * interval '1 millisecond'` : sql``
  // A claim that was sent ahead of its slot may arrive after it. Then the real time decides if the slot is missed or the lease is over.
  const now = p.isAhead === true ? sql<Date>`greatest(${p.now}::timestamptz, now())` : nowOf(p.now)
  const { names, dues, ids } = columnsOf(p.lanes)
  const { rows } = await sql<LockedRow>`
    select ${now} as now, lanes.ordinal::integer as ordinal, due.*
    from unnest(${names}::text[], ${dues}::double precision[], ${ids}::uuid[]) with ordinality
      as lanes(lane, after_due, after_id, ordinal)
    cross join lateral (
      select schedules.id, schedules.due_at, schedules.tenant_id, schedules.project_id, schedules.target_kind,
        schedules.revision, nullif(schedules.next_slot_at, schedules.due_at) as spread_slot_at, schedules.excluded_slots,
        schedules.auto_pause_threshold, schedules.consecutive_failures, schedules.owner_subject, schedules.grant_id
      from carillon.schedules
      where ${SCHEDULES_OF_LANE}
        and schedules.due_at <= ${now}
      order by schedules.due_at, schedules.id
      limit ${p.perLane}
      for update skip locked
    ) as due
    where exists (
      select from carillon.workers
      where workers.id = ${p.workerId} and workers.lease_expires_at > ${now} ${notTooFar}
    )`.execute(tx)
  const last = new Map<string, LanePosition>()
  for (const { ordinal, id, due_at } of rows) {
    const lane = p.lanes[ordinal - 1]?.lane
    if (lane !== undefined) last.set(lane, { dueAt: due_at.getTime(), scheduleId: id, slot: Infinity })
  }
  return { now: rows[0]?.now.getTime() ?? 0, schedules: rows.map(toLocked), last }
}

function toLocked(row: LockedRow): LockedSchedule {
  return {
    id: row.id,
    tenantId: row.tenant_id,
    projectId: row.project_id,
    targetKind: row.target_kind,
    revision: row.revision,
    // Without a spread a schedule is due at its slot.
    nextSlotAt: (row.spread_slot_at ?? row.due_at).getTime(),
    excludedSlots: row.excluded_slots?.map((slot) => slot.getTime()) ?? [],
    autoPauseThreshold: row.auto_pause_threshold,
    consecutiveFailures: row.consecutive_failures,
    ownerSubject: row.owner_subject,
    grantId: row.grant_id,
  }
}

interface ReadRow {
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
 * Reads revisions, grants and open runs of locked schedules. It is a statement of its own: its snapshot is newer than the
 * locks, so a run that was settled before the lock does not look open. A schedule whose revision is missing is returned too,
 * so that BEGIN can pause it instead of finding it due forever.
 */
export async function readClaimed(
  tx: Tx,
  p: { readonly schedules: readonly LockedSchedule[] },
): Promise<ClaimedSchedule[]> {
  const { schedules } = p
  const scheduleIds = plainArray(schedules.map(({ id }) => id))
  const { rows } = await sql<ReadRow>`
    select claimed.ordinal::integer as ordinal,
      ${CADENCE_COLUMN}::text as cadence,
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
    -- In one join: a lookup per schedule would search every month of the ledger.
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

function toClaimed(schedule: LockedSchedule, row: ReadRow): ClaimedSchedule {
  return {
    ...schedule,
    cadence: row.cadence,
    target: row.target,
    policy: row.policy,
    requiredScope: row.required_scope,
    grant: {
      id: schedule.grantId,
      version: row.grant_version ?? '0',
      // Without a grant there are no scopes, so BEGIN refuses the slot.
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
