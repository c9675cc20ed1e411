import type { RunReason, RunState } from '@carillon/api'
import { sql, type RawBuilder } from 'kysely'

import type { Db, Tx } from '../../db/database.ts'
import type { LedgerSlot } from '../../policy/ledger-slot.ts'

/** Selects the lines of schedules: all of them, or those between two slots. */
export interface LedgerRange {
  readonly ids: readonly string[]
  /** The first slot; null: no lower bound. */
  readonly from: number | null
  /** The slot after the last; null: no upper bound. */
  readonly before: number | null
  /** Runs that ended up to this instant were written by an older version of Carillon; null: none were. */
  readonly legacyUntil: Date | null
}

/** Slots of one schedule whose run and attempts look the same. */
export interface SlotGroup extends LedgerSlot {
  readonly scheduleId: string
  /** The number of slots in the group. */
  readonly slots: number
  /** The revision under which the runs began; null for attempts without a run. */
  readonly revision: number | null
  readonly hasRevision: boolean
  /** The values that the slots share, for `listSlotsOfGroup`. */
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
 * Groups the slots of schedules by what the ledger says about them. Most schedules have a handful of groups however long their ledger
 * is, so checking the groups costs little compared to reading the rows.
 *
 * Runs and attempts are combined by grouping, not by a join: Postgres cannot estimate the row counts of a join, and may choose a nested
 * loop over all pairs.
 */
export async function groupSlots(db: Db | Tx, p: LedgerRange): Promise<SlotGroup[]> {
  const { rows } = await sql<GroupRow>`
    with slots as (${slotsOf(p)}), grouped as (
      select schedule_id, ${SIGNATURE_COLUMNS}, count(*) as slots
      from slots
      group by schedule_id, ${SIGNATURE_COLUMNS}
    )
    select grouped.*, ${SIGNATURE} as signature, grouped.revision is null or stored.is_stored is true as has_revision
    from grouped
    left join lateral (
      select true as is_stored
      from carillon.schedule_revisions as revisions
      where revisions.schedule_id = grouped.schedule_id and revisions.revision = grouped.revision
      limit 1
    ) as stored on true`.execute(db)
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
