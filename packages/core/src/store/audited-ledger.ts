import { sql, type RawBuilder } from 'kysely'

import type { LedgerSlot } from '../policy/ledger-slot.ts'
import type { RunReason, RunState } from '../policy/run-state.ts'
import type { Db, Tx } from './database.ts'
import { isOpen } from './open-runs.ts'

/** What a schedule says of itself, beside what its ledger says. */
export interface AuditedCounts {
  readonly id: string
  readonly tenantId: string
  readonly projectId: string
  readonly runCount: number
  readonly failureCount: number
  readonly consecutiveFailures: number
  readonly createdAt: number
  readonly revision: number
  /** False if somebody took the present revision away. */
  readonly hasRevision: boolean
  /** It is deleted, and some of its revisions are gone: a purge removes it in portions, revisions first. */
  readonly isBeingPurged: boolean
}

export async function listAuditedCounts(db: Db | Tx, p: { ids: readonly string[] }): Promise<AuditedCounts[]> {
  const { rows } = await sql<{
    id: string
    tenant_id: string
    project_id: string
    run_count: string
    failure_count: string
    consecutive_failures: number
    created_at: Date
    revision: number
    has_revision: boolean
    is_being_purged: boolean
  }>`
    select schedules.id, schedules.tenant_id, schedules.project_id, schedules.run_count, schedules.failure_count,
      schedules.consecutive_failures, schedules.created_at, schedules.revision, there.present > 0 as has_revision,
      schedules.state = 'deleted' and there.revisions < schedules.revision as is_being_purged
    from carillon.schedules
    -- Not by \`exists\` in the list of columns: Postgres may read all revisions to answer it.
    cross join lateral (
      select count(*) as revisions, count(*) filter (where revisions.revision = schedules.revision) as present
      from carillon.schedule_revisions as revisions
      where revisions.schedule_id = schedules.id
    ) as there
    where schedules.id = any(${p.ids}::uuid[])`.execute(db)
  return rows.map((row) => ({
    id: row.id,
    tenantId: row.tenant_id,
    projectId: row.project_id,
    runCount: Number(row.run_count),
    failureCount: Number(row.failure_count),
    consecutiveFailures: row.consecutive_failures,
    createdAt: row.created_at.getTime(),
    revision: row.revision,
    hasRevision: row.has_revision,
    isBeingPurged: row.is_being_purged,
  }))
}

/** Lines of schedules, all of them or those of a part of their slots. */
export interface LedgerRange {
  readonly ids: readonly string[]
  /** The first slot; null: from the earliest on. */
  readonly from: number | null
  /** Before this slot; null: up to the latest. */
  readonly before: number | null
  /** What ended up to this instant was written by an older version. */
  readonly legacyUntil: Date | null
}

/** Slots of one schedule of which the ledger says the same. */
export interface SlotGroup extends LedgerSlot {
  readonly scheduleId: string
  /** How many. */
  readonly slots: number
  /** Null for attempts without a run. */
  readonly revision: number | null
  readonly hasRevision: boolean
  /** What all of them have in common, for `listSlotsOfGroup`. */
  readonly signature: string
}

interface GroupRow {
  schedule_id: string
  slots: string
  revision: number | null
  has_revision: boolean
  signature: string
  state: RunState | null
  reason: RunReason | null
  attempt_count: number | null
  attempts: number
  first_attempt: number | null
  last_attempt: number | null
  decisive: number
  decisive_attempt: number | null
  decisive_outcome: 'succeeded' | 'cancelled' | 'malformed' | null
  ends_before_attempt: boolean | null
  is_unreadable: boolean | null
  is_legacy: boolean | null
}

/**
 * What the ledger says of slots of schedules, put into groups. Most schedules have a handful of groups, however long their
 * ledger is, so judging them costs nothing beside reading them.
 *
 * Runs and attempts are put together by grouping, not by a join: of how many rows there are Postgres knows nothing, and once it
 * compared each with each.
 */
export async function groupSlots(db: Db | Tx, p: LedgerRange): Promise<SlotGroup[]> {
  const { rows } = await sql<GroupRow>`
    with slots as (${slotsOf(p)}), grouped as (
      select schedule_id, ${SIGNATURE_COLUMNS}, count(*) as slots
      from slots
      group by schedule_id, ${SIGNATURE_COLUMNS}
    )
    select grouped.*, ${SIGNATURE} as signature, grouped.revision is null or there.is_there is true as has_revision
    from grouped
    left join lateral (
      select true as is_there
      from carillon.schedule_revisions as revisions
      where revisions.schedule_id = grouped.schedule_id and revisions.revision = grouped.revision
      limit 1
    ) as there on true`.execute(db)
  return rows.map(toGroup)
}

/** The earliest slots of a group. */
export async function listSlotsOfGroup(
  db: Db | Tx,
  p: LedgerRange & { signature: string; limit: number },
): Promise<number[]> {
  const { rows } = await sql<{ scheduled_for: Date }>`
    with slots as (${slotsOf(p)})
    select slots.scheduled_for
    from slots
    where ${SIGNATURE} = ${p.signature}
    order by slots.scheduled_for
    limit ${p.limit}`.execute(db)
  return rows.map(({ scheduled_for }) => scheduled_for.getTime())
}

const SIGNATURE_COLUMNS = sql`state, reason, attempt_count, revision, attempts, first_attempt, last_attempt, decisive,
  decisive_attempt, decisive_outcome, ends_before_attempt, is_unreadable, is_legacy`
const SIGNATURE = sql`json_build_array(${SIGNATURE_COLUMNS})::text`

/** One row for each slot that has a run or an attempt. */
function slotsOf(p: LedgerRange): RawBuilder<unknown> {
  const instant = (slot: number | null): Date | null => (slot === null ? null : new Date(slot))
  return sql`
      select schedule_id, scheduled_for, max(state) as state, max(reason) as reason, max(attempt_count) as attempt_count,
        max(revision) as revision, count(attempt)::integer as attempts, min(attempt) as first_attempt,
        max(attempt) as last_attempt, count(decided)::integer as decisive,
        max(attempt) filter (where decided is not null) as decisive_attempt, max(decided) as decisive_outcome,
        max(completed_at) < max(ended_at) as ends_before_attempt, bool_or(is_unreadable) as is_unreadable,
        max(completed_at) <= ${p.legacyUntil}::timestamptz as is_legacy
      from (
        select runs.schedule_id, runs.scheduled_for, runs.state, runs.reason, runs.attempt_count, runs.revision,
          runs.completed_at, runs.error ->> 'code' = 'unreadable_spec' as is_unreadable, null::smallint as attempt,
          null::carillon.attempt_outcome as decided, null::timestamptz as ended_at
        from carillon.runs
        where runs.schedule_id = any(${p.ids}::uuid[])
          and runs.scheduled_for >= coalesce(${instant(p.from)}, '-infinity'::timestamptz)
          and runs.scheduled_for < coalesce(${instant(p.before)}, 'infinity'::timestamptz)
        union all
        select attempts.schedule_id, attempts.scheduled_for, null, null, null, null, null, null, attempts.attempt,
          case when attempts.outcome in ('succeeded', 'cancelled', 'malformed') then attempts.outcome end,
          attempts.completed_at
        from carillon.attempts
        where attempts.schedule_id = any(${p.ids}::uuid[])
          and attempts.scheduled_for >= coalesce(${instant(p.from)}, '-infinity'::timestamptz)
          and attempts.scheduled_for < coalesce(${instant(p.before)}, 'infinity'::timestamptz)
      ) as line
      group by schedule_id, scheduled_for`
}

function toGroup(row: GroupRow): SlotGroup {
  return {
    scheduleId: row.schedule_id,
    slots: Number(row.slots),
    revision: row.revision,
    hasRevision: row.has_revision,
    signature: row.signature,
    state: row.state,
    reason: row.reason,
    attemptCount: row.attempt_count ?? 0,
    attempts: row.attempts,
    firstAttempt: row.first_attempt ?? 0,
    lastAttempt: row.last_attempt ?? 0,
    decisive: row.decisive,
    decisiveAttempt: row.decisive_attempt ?? 0,
    decisiveOutcome: row.decisive_outcome,
    endsBeforeAttempt: row.ends_before_attempt === true,
    isUnreadable: row.is_unreadable === true,
    isLegacy: row.is_legacy === true,
  }
}

/** Sets the counts of a schedule right. Call with its row locked. */
export async function correctCounts(
  tx: Tx,
  p: { id: string; runCount: number; failureCount: number; consecutiveFailures: number },
): Promise<void> {
  await sql`
    update carillon.schedules
    set run_count = ${p.runCount}, failure_count = ${p.failureCount}, consecutive_failures = ${p.consecutiveFailures}
    where schedules.id = ${p.id}`.execute(tx)
}

/** A run that is not over and about which something is odd. */
export type OddRun = { readonly scheduleId: string; readonly scheduledFor: number; readonly runId: string } & (
  | { readonly what: 'turn' }
  | { readonly what: 'due'; readonly dueAt: number; readonly lane: string }
  /** `lostAt` is when its worker's lease ran out; null if that worker is not even on the list. */
  | { readonly what: 'held'; readonly workerId: string; readonly lostAt: number | null }
)

/**
 * Runs of schedules that wait for their turn while no other run of theirs is open, that have been due since before an instant, or
 * whose worker's lease had run out by then; if that worker is not on the list, that were started by then. Reads the open runs of
 * these schedules, and no others.
 */
export async function listOddRuns(db: Db | Tx, p: { ids: readonly string[]; before: Date }): Promise<OddRun[]> {
  const { rows } = await sql<{
    schedule_id: string
    scheduled_for: Date
    id: string
    due_at: Date | null
    lane: string | null
    worker_id: string | null
    lost_at: Date | null
  }>`
    select open.schedule_id, open.scheduled_for, open.id, nullif(open.due_at, 'infinity') as due_at, open.lane, open.worker_id,
      workers.lease_expires_at as lost_at
    from (
      select runs.schedule_id, runs.scheduled_for, runs.id, runs.due_at, runs.waits_for, runs.lane, runs.worker_id,
        runs.started_at, bool_and(runs.waits_for is not distinct from 'turn') over (partition by runs.schedule_id) as all_wait
      from carillon.runs
      where runs.schedule_id = any(${p.ids}::uuid[]) and ${isOpen()}
    ) as open
    left join carillon.workers on workers.id = open.worker_id
    where open.due_at <= ${p.before}
      or open.all_wait
      or (open.worker_id is not null and coalesce(workers.lease_expires_at, open.started_at) <= ${p.before})`.execute(
    db,
  )
  return rows.map((row) => {
    const run = { scheduleId: row.schedule_id, scheduledFor: row.scheduled_for.getTime(), runId: row.id }
    if (row.worker_id !== null) {
      return { ...run, what: 'held', workerId: row.worker_id, lostAt: row.lost_at?.getTime() ?? null }
    }
    if (row.due_at === null) return { ...run, what: 'turn' }
    return { ...run, what: 'due', dueAt: row.due_at.getTime(), lane: row.lane ?? '' }
  })
}
