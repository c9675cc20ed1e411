import { ATTEMPT_OUTCOMES, RUN_STATES } from '@carillon/api'

import { bigint, boolean, columns, instant, integer, text, uuid, word } from '../../db/columns.ts'
import type { Db, Tx } from '../../db/database.ts'
import { RUN_REASON } from '../../db/shared-columns.ts'
import { sql, type Sql } from '../../db/sql.ts'
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

const SIGNATURE_COLUMNS = sql`state, reason, attempt_count, revision, attempts, first_attempt, last_attempt, decisive,
  decisive_attempt, decisive_outcome, ends_before_attempt, is_unreadable, is_legacy`
const SIGNATURE = sql`json_build_array(${SIGNATURE_COLUMNS})::text`

const GROUP_COLUMNS = columns('grouped', {
  scheduleId: uuid,
  slots: bigint,
  revision: integer.orNull,
  hasRevision: boolean.as(sql`grouped.revision is null or stored.is_stored is true`),
  signature: text.as(SIGNATURE),
  state: word('run_state', RUN_STATES).orNull,
  reason: RUN_REASON.orNull,
  attemptCount: integer.as(sql`coalesce(grouped.attempt_count, 0)`),
  attempts: integer,
  firstAttempt: integer.as(sql`coalesce(grouped.first_attempt, 0)`),
  lastAttempt: integer.as(sql`coalesce(grouped.last_attempt, 0)`),
  decisive: integer,
  decisiveAttempt: integer.as(sql`coalesce(grouped.decisive_attempt, 0)`),
  // `slotsOf` selects the outcomes that end a run.
  decisiveOutcome: word('attempt_outcome', ATTEMPT_OUTCOMES).only(['succeeded', 'cancelled', 'malformed']).orNull,
  endsBeforeAttempt: boolean.as(sql`grouped.ends_before_attempt is true`),
  isUnreadable: boolean.as(sql`grouped.is_unreadable is true`),
  isLegacy: boolean.as(sql`grouped.is_legacy is true`),
})

/**
 * Groups the slots of schedules by what the ledger says about them. Most schedules have a handful of groups however long their ledger
 * is, so checking the groups costs little compared to reading the rows.
 *
 * Runs and attempts are combined by grouping, not by a join: Postgres cannot estimate the row counts of a join, and may choose a nested
 * loop over all pairs.
 */
export async function groupSlots(db: Db | Tx, p: LedgerRange): Promise<SlotGroup[]> {
  return sql`
    with slots as (${slotsOf(p)}), grouped as (
      select schedule_id, ${SIGNATURE_COLUMNS}, count(*) as slots
      from slots
      group by schedule_id, ${SIGNATURE_COLUMNS}
    )
    select ${GROUP_COLUMNS}
    from grouped
    left join lateral (
      select true as is_stored
      from schedule_revisions as revisions
      where revisions.schedule_id = grouped.schedule_id and revisions.revision = grouped.revision
      limit 1
    ) as stored on true`.execute(db)
}

const SLOT_COLUMNS = columns('slots', { scheduledFor: instant })

/** The earliest slots of a group. */
export async function listSlotsOfGroup(
  db: Db | Tx,
  p: LedgerRange & { signature: string; limit: number },
): Promise<number[]> {
  const rows = await sql`
    with slots as (${slotsOf(p)})
    select ${SLOT_COLUMNS}
    from slots
    where ${SIGNATURE} = ${p.signature}
    order by slots.scheduled_for
    limit ${p.limit}`.execute(db)
  return rows.map(({ scheduledFor }) => scheduledFor)
}

/** One row for each slot that has a run or an attempt. */
function slotsOf(p: LedgerRange): Sql<never> {
  const bound = (slot: number | null): Date | null => (slot === null ? null : new Date(slot))
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
          null::attempt_outcome as decided, null::timestamptz as ended_at
        from runs
        where runs.schedule_id = any(${p.ids}::uuid[])
          and runs.scheduled_for >= coalesce(${bound(p.from)}, '-infinity'::timestamptz)
          and runs.scheduled_for < coalesce(${bound(p.before)}, 'infinity'::timestamptz)
        union all
        select attempts.schedule_id, attempts.scheduled_for, null, null, null, null, null, null, attempts.attempt,
          case when attempts.outcome in ('succeeded', 'cancelled', 'malformed') then attempts.outcome end,
          attempts.completed_at
        from attempts
        where attempts.schedule_id = any(${p.ids}::uuid[])
          and attempts.scheduled_for >= coalesce(${bound(p.from)}, '-infinity'::timestamptz)
          and attempts.scheduled_for < coalesce(${bound(p.before)}, 'infinity'::timestamptz)
      ) as line
      group by schedule_id, scheduled_for`
}
