import {
  bigint,
  boolean,
  columns,
  instant,
  integer,
  json,
  rowVersion,
  smallint,
  text,
  uuid,
  type RowFrom,
} from '../../db/columns.ts'
import type { Tx } from '../../db/database.ts'
import { isOpen } from '../../db/indexed-sql.ts'
import { nowOf } from '../../db/now.ts'
import { plainArray, quotedArray } from '../../db/parameters.ts'
import { CADENCE_TEXT } from '../../db/shared-columns.ts'
import { sql } from '../../db/sql.ts'
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
  readonly runCount: number
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

const LOCKED_COLUMNS = columns('due', {
  ordinal: integer.as(sql`lanes.ordinal::integer`),
  id: uuid,
  dueAt: instant.present,
  tenantId: text,
  projectId: text,
  targetKind: text,
  revision: integer,
  /** The next slot, if a spread delays it; null: the schedule is due at its slot. */
  spreadSlotAt: instant.orNull,
  excludedSlots: instant.list.orNull,
  autoPauseThreshold: smallint,
  consecutiveFailures: integer,
  runCount: bigint,
  ownerSubject: text,
  grantId: uuid,
})

/** The part of a claimed schedule that its own row holds. */
type LockedSchedule = RowFrom<typeof LOCKED_COLUMNS>

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
  const now = p.isAhead === true ? sql`greatest(${p.now}::timestamptz, now())` : nowOf(p.now)
  const { names, dues, ids } = columnsOf(p.lanes)
  const rows = await sql`
    select ${LOCKED_COLUMNS.with('due', { now: instant.as(now) })}
    from unnest(${names}::text[], ${dues}::double precision[], ${ids}::uuid[]) with ordinality
      as lanes(lane, after_due, after_id, ordinal)
    cross join lateral (
      select schedules.id, schedules.due_at, schedules.tenant_id, schedules.project_id, schedules.target_kind,
        schedules.revision, nullif(schedules.next_slot_at, schedules.due_at) as spread_slot_at, schedules.excluded_slots,
        schedules.auto_pause_threshold, schedules.consecutive_failures, schedules.run_count, schedules.owner_subject,
        schedules.grant_id
      from schedules
      where ${SCHEDULES_OF_LANE}
        and schedules.due_at <= ${now}
      order by schedules.due_at, schedules.id
      limit ${p.perLane}
      for update skip locked
    ) as due
    where exists (
      select from workers
      where workers.id = ${p.workerId} and workers.lease_expires_at > ${now} ${notTooFar}
    )`.execute(tx)
  const last = new Map<string, LanePosition>()
  for (const { ordinal, id, dueAt } of rows) {
    const lane = p.lanes[ordinal - 1]?.lane
    if (lane !== undefined) last.set(lane, { dueAt, scheduleId: id, slot: Infinity })
  }
  return { now: rows[0]?.now ?? 0, schedules: rows, last }
}

/** What a locked schedule refers to. Its revision and its grant may be missing. */
const CLAIMED_COLUMNS = columns('revisions', {
  ordinal: integer.as(sql`claimed.ordinal::integer`),
  cadence: CADENCE_TEXT.orNull,
  target: json().orNull,
  policy: text.orNull.as(sql`revisions.policy::text`),
  requiredScope: text.orNull,
  isAccessLost: boolean.orNull.as(sql`
    nullif(exists (
      select
      from members
      where members.tenant_id = claimed.tenant_id and members.project_id = claimed.project_id
        and members.subject in (claimed.owner_subject, grants.subject) and members.removed_at is not null
    ), false)`),
})
  .with('grants', {
    version: rowVersion.orNull.as(sql`grants.xmin`),
    subject: text.orNull,
    billingAccountId: text.orNull,
    scheduleId: uuid.orNull,
    scopes: text.list.as(sql`coalesce(grants.scopes, '{}')`),
    expiresAt: instant.orNull,
    revokedAt: instant.orNull,
  })
  .with('open_runs', { open: json<readonly OpenRun[]>().orNull })

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
  const rows = await sql`
    select ${CLAIMED_COLUMNS}
    from unnest(
      ${scheduleIds}::uuid[],
      ${plainArray(schedules.map(({ revision }) => revision))}::integer[],
      ${plainArray(schedules.map(({ grantId }) => grantId))}::uuid[],
      ${quotedArray(schedules.map(({ tenantId }) => tenantId))}::text[],
      ${quotedArray(schedules.map(({ projectId }) => projectId))}::text[],
      ${quotedArray(schedules.map(({ ownerSubject }) => ownerSubject))}::text[]
    ) with ordinality as claimed(id, revision, grant_id, tenant_id, project_id, owner_subject, ordinal)
    left join schedule_revisions as revisions
      on revisions.schedule_id = claimed.id and revisions.revision = claimed.revision
    left join execution_grants as grants
      on grants.id = claimed.grant_id and grants.tenant_id = claimed.tenant_id and grants.project_id = claimed.project_id
    -- In one join: a lookup per schedule would search every month of the ledger.
    left join (
      select runs.schedule_id, json_agg(json_build_object(
        'id', runs.id, 'waitsFor', runs.waits_for, 'attemptCount', runs.attempt_count
      )) as open
      from runs
      where runs.schedule_id = any(${scheduleIds}::uuid[]) and ${isOpen()}
      group by runs.schedule_id
    ) as open_runs on open_runs.schedule_id = claimed.id`.execute(tx)
  return rows.flatMap((row) => {
    const schedule = schedules[row.ordinal - 1]
    return schedule === undefined ? [] : [toClaimed(schedule, row)]
  })
}

function toClaimed(schedule: LockedSchedule, row: RowFrom<typeof CLAIMED_COLUMNS>): ClaimedSchedule {
  return {
    ...schedule,
    nextSlotAt: schedule.spreadSlotAt ?? schedule.dueAt,
    excludedSlots: schedule.excludedSlots ?? [],
    // Without a revision the JSON is `null`: BEGIN cannot read that, and pauses the schedule.
    cadence: row.cadence ?? 'null',
    target: row.target,
    policy: row.policy ?? 'null',
    requiredScope: row.requiredScope ?? '',
    grant: {
      id: schedule.grantId,
      version: row.version ?? '0',
      // Without a grant there are no scopes, so BEGIN refuses the slot.
      subject: row.subject ?? '',
      billingAccountId: row.billingAccountId,
      scheduleId: row.scheduleId,
      scopes: row.scopes,
      expiresAt: row.expiresAt,
      revokedAt: row.revokedAt,
    },
    isAccessLost: row.isAccessLost ?? false,
    open: row.open ?? [],
  }
}
