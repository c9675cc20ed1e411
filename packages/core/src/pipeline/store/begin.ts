import { SYSTEM_SUBJECT } from '@carillon/api'

import { columns, uuid } from '../../db/columns.ts'
import type { Tx } from '../../db/database.ts'
import { runsInsert, stampTable, type NewLine, type NewLines } from '../../db/new-lines.ts'
import { nowOf, stampOf } from '../../db/now.ts'
import { instantsText, instantText, plainArray } from '../../db/parameters.ts'
import { literal, sql } from '../../db/sql.ts'
import { namingMissingMonths, writeLines } from '../../ledger/lines.ts'
import type { BeginPlan, SingleRunPlan } from '../begin-plan.ts'

/** What both statements of BEGIN need. */
interface BeginStamp {
  readonly workerId: string
  /** Null in production: Postgres' clock decides. */
  readonly now: Date | null
  /** The instant of slots that are claimed ahead of it: no line records an earlier begin. Null for slots that are due already. */
  readonly notBefore: Date | null
}

/**
 * I3: moves locked schedules to their next slots and writes the lines of the slots that are due, in one statement.
 * @returns the ids of the lines that were written
 * @throws MissingMonthError if the ledger has no month for a slot
 */
export async function advanceSchedules(
  tx: Tx,
  p: BeginStamp & { readonly plans: readonly BeginPlan[]; readonly onConflict: 'refuse' | 'keep' },
): Promise<Set<string>> {
  const { plans } = p
  const newLines: NewLines = { ...p, lines: plans.flatMap((plan) => plan.lines) }
  const statement = sql`
    with ${stampTable(newLines)}, advanced as (
      update schedules
      set state = advance.state::schedule_state,
        next_slot_at = advance.next_slot_at,
        due_at = advance.due_at,
        excluded_slots = nullif(advance.excluded_slots, '')::timestamptz[],
        consecutive_failures = advance.consecutive_failures,
        run_count = schedules.run_count + advance.run_count,
        failure_count = schedules.failure_count + advance.failure_count,
        paused_reason = coalesce(advance.paused_reason, schedules.paused_reason),
        paused_at = case when advance.paused_reason is null then schedules.paused_at else ${nowOf(p.now)} end,
        paused_by_subject =
          case when advance.paused_reason is null then schedules.paused_by_subject else ${literal(SYSTEM_SUBJECT)} end
      from unnest(
        ${plans.map(({ schedule }) => schedule.id)}::uuid[],
        ${plans.map(({ state }) => state)}::text[],
        ${plans.map(({ nextSlotAt }) => instantText(nextSlotAt))}::timestamptz[],
        ${plans.map(({ dueAt }) => instantText(dueAt))}::timestamptz[],
        ${plans.map(({ excludedSlots }) => instantsText(excludedSlots))}::text[],
        ${plans.map(({ consecutiveFailures }) => consecutiveFailures)}::integer[],
        ${plans.map(({ runCount }) => runCount)}::integer[],
        ${plans.map(({ failureCount }) => failureCount)}::integer[],
        ${plans.map(({ pausedReason }) => pausedReason)}::text[]
      ) as advance(
        id, state, next_slot_at, due_at, excluded_slots, consecutive_failures, run_count, failure_count, paused_reason
      )
      where schedules.id = advance.id
    )
    ${runsInsert(newLines)}`
  return writeLines(tx, newLines, statement)
}

/**
 * I3: what `advanceSchedules` writes, for schedules where one run begins and nothing else changes. Most slots are of this kind, so
 * this statement sends ids and instants only: the new line takes everything else from the schedule's row.
 * @throws MissingMonthError if the ledger has no month for a slot
 */
export async function advanceSingleRuns(
  tx: Tx,
  p: BeginStamp & { readonly plans: readonly SingleRunPlan[] },
): Promise<void> {
  const { plans } = p
  const lines = plans.map(({ lines: [line] }) => line)
  const statement = sql`
    with stamp as materialized (
      select ${stampOf(p.now, p.notBefore)} as at
    ), advanced as (
      update schedules
      set next_slot_at = to_timestamp(advance.next_slot / 1000.0),
        due_at = to_timestamp(advance.due / 1000.0),
        run_count = schedules.run_count + 1
      from unnest(
        ${plainArray(lines.map(({ scheduleId }) => scheduleId))}::uuid[],
        ${plainArray(lines.map(({ scheduledFor }) => scheduledFor))}::double precision[],
        ${plainArray(lines.map(({ id }) => id))}::uuid[],
        ${plainArray(plans.map(({ nextSlotAt }) => nextSlotAt))}::double precision[],
        ${plainArray(plans.map(({ dueAt }) => dueAt))}::double precision[]
      ) as advance(id, slot, run_id, next_slot, due)
      where schedules.id = advance.id
      returning schedules.id, schedules.tenant_id, schedules.project_id, schedules.revision, advance.slot, advance.run_id
    )
    insert into runs (
      schedule_id, scheduled_for, id, tenant_id, project_id, revision, trigger, state, attempt_count, token, worker_id, begun_at,
      started_at
    )
    select id, to_timestamp(slot / 1000.0), run_id, tenant_id, project_id, revision, 'schedule', 'running', 1, 1,
      ${p.workerId}::uuid, (select at from stamp), (select at from stamp)
    from advanced`
  await namingMissingMonths(lines, () => statement.execute(tx))
}

const LINE_ID = columns('line', { id: uuid })

/** The ids of those new lines whose slot has a line already. */
export async function findWritten(tx: Tx, p: { readonly lines: readonly NewLine[] }): Promise<Set<string>> {
  const rows = await sql`
    select ${LINE_ID}
    from unnest(
      ${p.lines.map((line) => line.scheduleId)}::uuid[],
      ${p.lines.map((line) => instantText(line.scheduledFor))}::timestamptz[],
      ${p.lines.map((line) => line.id)}::uuid[]
    ) as line(schedule_id, scheduled_for, id)
    join runs on runs.schedule_id = line.schedule_id and runs.scheduled_for = line.scheduled_for`.execute(tx)
  return new Set(rows.map(({ id }) => id))
}
