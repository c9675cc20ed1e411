import { sql, type RawBuilder } from 'kysely'

import { plainArray } from './array-text.ts'
import type { Tx } from './database.ts'
import { namingMissingMonths } from './missing-month.ts'
import type { NewRun } from './new-run.ts'
import { nowOf, stampOf } from './now.ts'

/** Where a locked schedule goes from here. */
export interface Advance {
  readonly scheduleId: string
  /** `active` if and only if there is a next slot (I1). */
  readonly state: 'active' | 'completed' | 'paused'
  readonly nextSlotAt: number | null
  readonly dueAt: number | null
  readonly excludedSlots: readonly number[]
  readonly consecutiveFailures: number
  /** What `run_count` changes by: 1 if a run begins, less those that it takes the place of and that never ran. */
  readonly runCount: number
  readonly failureCount: number
  readonly pausedReason: string | null
}

/** Lines to write, and in whose name those that run are held. */
interface NewLines {
  readonly runs: readonly NewRun[]
  readonly workerId: string | null
  readonly onConflict: 'refuse' | 'keep'
  readonly now: Date | null
  /** Of a slot that is claimed ahead: its instant. No line says that it began before. */
  readonly notBefore?: Date | null
}

/**
 * Writes lines of the ledger: runs that start now under this worker's lease, that wait, or slots that do not run.
 * A second line for a slot is refused by the key (I2), and the transaction with it, unless the caller wants to keep the
 * line that is there. Not `keep` by rule: `on conflict` writes more log.
 * @returns the ids of what was written
 * @throws MissingMonthError if the ledger has no month for a slot
 */
export async function insertRuns(tx: Tx, p: NewLines): Promise<Set<string>> {
  return writeLines(tx, p, sql`with ${stampTable(p)} ${runsInsert(p)}`)
}

/**
 * I3: moves locked schedules to their next slots and writes the lines of those that are due, in one statement.
 * @returns the ids of what was written
 * @throws MissingMonthError if the ledger has no month for a slot
 */
export async function advanceSchedules(
  tx: Tx,
  p: NewLines & { readonly advances: readonly Advance[] },
): Promise<Set<string>> {
  const { advances } = p
  const statement = sql<{ id: string }>`
    with ${stampTable(p)}, advanced as (
      update carillon.schedules
      set state = advance.state::carillon.schedule_state,
        next_slot_at = advance.next_slot_at,
        due_at = advance.due_at,
        excluded_slots = nullif(advance.excluded_slots, '')::timestamptz[],
        consecutive_failures = advance.consecutive_failures,
        run_count = schedules.run_count + advance.run_count,
        failure_count = schedules.failure_count + advance.failure_count,
        paused_reason = coalesce(advance.paused_reason, schedules.paused_reason),
        paused_at = case when advance.paused_reason is null then schedules.paused_at else ${nowOf(p.now)} end,
        paused_by_subject = case when advance.paused_reason is null then schedules.paused_by_subject else 'system:carillon' end
      from unnest(
        ${advances.map((a) => a.scheduleId)}::uuid[],
        ${advances.map((a) => a.state)}::text[],
        ${advances.map((a) => toIso(a.nextSlotAt))}::timestamptz[],
        ${advances.map((a) => toIso(a.dueAt))}::timestamptz[],
        ${advances.map((a) => toArrayText(a.excludedSlots))}::text[],
        ${advances.map((a) => a.consecutiveFailures)}::integer[],
        ${advances.map((a) => a.runCount)}::integer[],
        ${advances.map((a) => a.failureCount)}::integer[],
        ${advances.map((a) => a.pausedReason)}::text[]
      ) as advance(
        id, state, next_slot_at, due_at, excluded_slots, consecutive_failures, run_count, failure_count, paused_reason
      )
      where schedules.id = advance.id
    )
    ${runsInsert(p)}`
  return writeLines(tx, p, statement)
}

/** A run that begins, and the next slot of its schedule: all that becomes of most slots. */
export interface OrdinaryAdvance {
  readonly run: NewRun
  readonly nextSlotAt: number
  readonly dueAt: number
}

/**
 * I3: what `advanceSchedules` writes, for the many schedules of which one run begins and nothing else changes. What the row of
 * a schedule says is not sent: the line takes it from there.
 * @throws MissingMonthError if the ledger has no month for a slot
 */
export async function advanceOrdinary(
  tx: Tx,
  p: Omit<NewLines, 'runs' | 'onConflict'> & { readonly advances: readonly OrdinaryAdvance[] },
): Promise<void> {
  const { advances } = p
  const runs = advances.map(({ run }) => run)
  const statement = sql`
    with stamp as materialized (
      select ${stampOf(p.now, p.notBefore)} as at
    ), advanced as (
      update carillon.schedules
      set next_slot_at = to_timestamp(advance.next_slot / 1000.0),
        due_at = to_timestamp(advance.due / 1000.0),
        run_count = schedules.run_count + 1
      from unnest(
        ${plainArray(runs.map(({ scheduleId }) => scheduleId))}::uuid[],
        ${plainArray(runs.map(({ scheduledFor }) => scheduledFor))}::double precision[],
        ${plainArray(runs.map(({ id }) => id))}::uuid[],
        ${plainArray(advances.map(({ nextSlotAt }) => nextSlotAt))}::double precision[],
        ${plainArray(advances.map(({ dueAt }) => dueAt))}::double precision[]
      ) as advance(id, slot, run_id, next_slot, due)
      where schedules.id = advance.id
      returning schedules.id, schedules.tenant_id, schedules.project_id, schedules.revision, advance.slot, advance.run_id
    )
    insert into carillon.runs (
      schedule_id, scheduled_for, id, tenant_id, project_id, revision, trigger, state, attempt_count, token, worker_id, begun_at,
      started_at
    )
    select id, to_timestamp(slot / 1000.0), run_id, tenant_id, project_id, revision, 'schedule', 'running', 1, 1,
      ${p.workerId}::uuid, (select at from stamp), (select at from stamp)
    from advanced`
  await namingMissingMonths(runs, () => statement.execute(tx))
}

/** Of new lines those whose slot has one already, by id. */
export async function findTaken(tx: Tx, p: { readonly runs: readonly NewRun[] }): Promise<Set<string>> {
  const { rows } = await sql<{ id: string }>`
    select run.id
    from unnest(
      ${p.runs.map((run) => run.scheduleId)}::uuid[],
      ${p.runs.map((run) => toIso(run.scheduledFor))}::timestamptz[],
      ${p.runs.map((run) => run.id)}::uuid[]
    ) as run(schedule_id, scheduled_for, id)
    join carillon.runs on runs.schedule_id = run.schedule_id and runs.scheduled_for = run.scheduled_for`.execute(tx)
  return new Set(rows.map(({ id }) => id))
}

async function writeLines(tx: Tx, { runs }: NewLines, statement: RawBuilder<{ id: string }>): Promise<Set<string>> {
  const { rows } = await namingMissingMonths(runs, () => statement.execute(tx))
  return new Set(rows.map(({ id }) => id))
}

/** One instant for all that a statement writes down. */
function stampTable(p: Pick<NewLines, 'now' | 'notBefore'>): RawBuilder<unknown> {
  return sql`stamp as materialized (select ${stampOf(p.now, p.notBefore)} as at)`
}

function runsInsert(p: NewLines): RawBuilder<{ id: string }> {
  const { runs } = p
  return sql`
    insert into carillon.runs (
      schedule_id, scheduled_for, id, tenant_id, project_id, revision, trigger, state, reason, attempt_count, token,
      worker_id, begun_at, started_at, completed_at, error, waits_for, due_at, lane
    )
    select run.schedule_id, run.scheduled_for, run.id, run.tenant_id, run.project_id, run.revision, run.trigger, run.state,
      run.reason, case run.state when 'running' then 1 else 0 end, case run.state when 'running' then 1 else 0 end,
      case run.state when 'running' then ${p.workerId}::uuid end,
      stamp.at,
      case run.state when 'running' then stamp.at end,
      case when run.state in ('skipped', 'failed') then stamp.at end,
      run.error::json,
      run.waits_for,
      case run.waits_for when 'turn' then 'infinity'::timestamptz when 'worker' then date_trunc('milliseconds', stamp.at) end,
      case when run.waits_for is not null then carillon.lane_of(run.target_kind, run.tenant_id) end
    from unnest(
      ${runs.map((run) => run.scheduleId)}::uuid[],
      ${runs.map((run) => toIso(run.scheduledFor))}::timestamptz[],
      ${runs.map((run) => run.id)}::uuid[],
      ${runs.map((run) => run.tenantId)}::text[],
      ${runs.map((run) => run.projectId)}::text[],
      ${runs.map((run) => run.revision)}::integer[],
      ${runs.map((run) => run.trigger)}::carillon.run_trigger[],
      ${runs.map((run) => run.state)}::carillon.run_state[],
      ${runs.map((run) => run.reason)}::carillon.run_reason[],
      ${runs.map((run) => run.error)}::text[],
      ${runs.map((run) => run.waits?.for ?? null)}::carillon.run_wait[],
      ${runs.map((run) => run.waits?.targetKind ?? null)}::text[]
    ) as run(
      schedule_id, scheduled_for, id, tenant_id, project_id, revision, trigger, state, reason, error, waits_for, target_kind
    )
    cross join stamp
    ${p.onConflict === 'keep' ? sql`on conflict do nothing` : sql``}
    returning runs.id`
}

function toIso(instant: number | null): string | null {
  return instant === null ? null : new Date(instant).toISOString()
}

function toArrayText(instants: readonly number[]): string {
  return instants.length === 0 ? '' : `{${instants.map((instant) => new Date(instant).toISOString()).join(',')}}`
}
