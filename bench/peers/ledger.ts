import { POLICY } from '../policy.ts'
import type { Queryable } from './graphile.ts'

export interface LedgerSlot {
  readonly scheduleId: string
  readonly scheduledFor: string
}

const YEAR = '365 days'

/** Writes what Carillon writes when a slot begins: the run, and the schedule's next slot. */
export async function beginSlots(client: Queryable, slots: readonly LedgerSlot[]): Promise<void> {
  await client.query(
    `with slot as (select * from unnest($1::uuid[], $2::timestamptz[]) as s(schedule_id, scheduled_for)),
    advanced as (
      update carillon.schedules set next_slot_at = next_slot_at + $3::interval, due_at = due_at + $3::interval,
        run_count = run_count + 1
      from slot where schedules.id = slot.schedule_id
      returning schedules.id, schedules.tenant_id, schedules.project_id, slot.scheduled_for
    )
    insert into carillon.runs (
      schedule_id, scheduled_for, id, tenant_id, project_id, revision, trigger, state, attempt_count, token, worker_id,
      begun_at, started_at
    )
    select id, scheduled_for, uuidv7(), tenant_id, project_id, 1, 'schedule', 'running', 1, 1, id, now(), now()
    from advanced`,
    [...columnsOf(slots), YEAR],
  )
}

/**
 * Writes what Carillon writes when a slot ends: the attempt, and the run's final state. As in Carillon, the update finds its rows by the
 * batch without a join.
 */
export async function settleSlots(client: Queryable, slots: readonly LedgerSlot[]): Promise<void> {
  await client.query(
    `with settled as (
      update carillon.runs set state = 'succeeded', worker_id = null, completed_at = now()
      where runs.schedule_id = any($1::uuid[]) and runs.completed_at is null and runs.state = 'running'
        and coalesce((runs.schedule_id, runs.scheduled_for) in (
          select slot.schedule_id, slot.scheduled_for from unnest($1::uuid[], $2::timestamptz[]) as slot(schedule_id, scheduled_for)
        ), false)
      returning runs.schedule_id, runs.scheduled_for, runs.tenant_id, runs.project_id, runs.started_at, runs.completed_at
    )
    insert into carillon.attempts (
      schedule_id, scheduled_for, attempt, tenant_id, project_id, worker_id, outcome, started_at, completed_at
    )
    select schedule_id, scheduled_for, 1, tenant_id, project_id, schedule_id, 'succeeded', started_at, completed_at
    from settled`,
    columnsOf(slots),
  )
}

function columnsOf(slots: readonly LedgerSlot[]): [string[], string[]] {
  return [slots.map(({ scheduleId }) => scheduleId), slots.map(({ scheduledFor }) => scheduledFor)]
}

const CADENCE = JSON.stringify({ kind: 'cron', expression: '30 3 * * *', timezone: 'UTC' })

/** Writes the rows that Carillon keeps of a schedule: its state, its grant, its first revision and its first change. */
export async function insertSchedule(client: Queryable, slotAt: Date): Promise<LedgerSlot> {
  const scheduledFor = slotAt.toISOString()
  const { rows } = await client.query<{ id: string }>({
    name: 'insert-schedule',
    text: `with schedule as (
      insert into carillon.schedules (
        id, tenant_id, project_id, owner_subject, target_kind, state, revision, grant_id, next_slot_at, due_at,
        auto_pause_threshold, created_by_subject, created_at
      )
      select id, 'default', 'default', 'user:bench', 'noop', 'active', 1, id, $1::timestamptz, $1, 10, 'user:bench', now()
      from uuidv7() as id
      returning *
    ), own_grant as (
      insert into carillon.execution_grants (
        id, tenant_id, project_id, subject, scopes, created_by_subject, created_at, schedule_id
      )
      select id, tenant_id, project_id, owner_subject, array['noop:call:nothing'], 'user:bench', now(), id
      from schedule
    ), change as (
      insert into carillon.schedule_changes (
        schedule_id, tenant_id, project_id, change, revision, next_slot_at, actor_subject, reason, changed_at
      )
      select id, tenant_id, project_id, 'created', 1, next_slot_at, 'user:bench', null, now()
      from schedule
    )
    insert into carillon.schedule_revisions (
      schedule_id, revision, tenant_id, project_id, name, cadence_kind, cadence_cron, target_kind, target, policy,
      grant_id, required_scope, changed_by_subject, changed_at
    )
    select id, 1, tenant_id, project_id, 'bench', 'cron', $2::json, target_kind,
      json_build_object('kind', target_kind), $3::json, id, 'noop:call:nothing', 'user:bench', now()
    from schedule
    returning schedule_id as id`,
    values: [scheduledFor, CADENCE, POLICY],
  })
  const [row] = rows
  if (row === undefined) throw new Error('expected the row of a schedule, got none')
  return { scheduleId: row.id, scheduledFor }
}
