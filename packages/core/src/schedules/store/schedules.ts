import type { ScheduleState } from '@carillon/api'
import { sql, type RawBuilder } from 'kysely'

import { CADENCE_COLUMN } from '../../db/columns.ts'
import type { Db, Tx } from '../../db/database.ts'
import type { Scope } from '../../kernel/scope.ts'
import type { Schedule } from '../../ledger/records.ts'

interface Row {
  id: string
  tenant_id: string
  project_id: string
  owner_subject: string
  name: string
  state: Schedule['state']
  revision: number
  cadence: Schedule['cadence']
  target: Schedule['target']
  policy: Schedule['policy']
  grant_id: string
  grant_expires_at: Date | null
  is_grant_revoked: boolean
  next_slot_at: Date | null
  due_at: Date | null
  excluded_slots: Date[] | null
  run_count: string
  failure_count: string
  consecutive_failures: number
  created_by_subject: string
  created_at: Date
  updated_by_subject: string | null
  updated_at: Date | null
  paused_by_subject: string | null
  paused_reason: string | null
  paused_at: Date | null
}

const SCHEDULE_COLUMNS = sql`
  schedules.id, schedules.tenant_id, schedules.project_id, schedules.owner_subject, revisions.name, schedules.state,
  schedules.revision,
  ${CADENCE_COLUMN} as cadence,
  revisions.target, revisions.policy, schedules.grant_id, grants.expires_at as grant_expires_at,
  grants.id is null or grants.revoked_at is not null as is_grant_revoked, schedules.next_slot_at, schedules.due_at,
  schedules.excluded_slots, schedules.run_count, schedules.failure_count, schedules.consecutive_failures,
  schedules.created_by_subject, schedules.created_at, schedules.updated_by_subject, schedules.updated_at,
  schedules.paused_by_subject, schedules.paused_reason, schedules.paused_at`

const FROM_SCHEDULES = sql`
  carillon.schedules
  join carillon.schedule_revisions as revisions
    on revisions.schedule_id = schedules.id and revisions.revision = schedules.revision
  left join carillon.execution_grants as grants on grants.id = schedules.grant_id`

/** A schedule that is not deleted; undefined also if the schedule belongs to another project (I9). */
export async function findSchedule(db: Db | Tx, p: Scope & { id: string }): Promise<Schedule | undefined> {
  const { rows } = await sql<Row>`
    select ${SCHEDULE_COLUMNS}
    from ${FROM_SCHEDULES}
    where schedules.id = ${p.id} and schedules.tenant_id = ${p.tenantId} and schedules.project_id = ${p.projectId}
      and schedules.state <> 'deleted'`.execute(db)
  const [row] = rows
  return row && toSchedule(row)
}

/**
 * `findSchedule` with the row locked for the rest of the transaction. It takes two statements: a single one that waited for the lock
 * of an edit would join the current row with the revisions of an older snapshot, and find no schedule.
 */
export async function lockSchedule(tx: Tx, p: Scope & { id: string }): Promise<Schedule | undefined> {
  const { rows } = await sql`
    select
    from carillon.schedules
    where schedules.id = ${p.id} and schedules.tenant_id = ${p.tenantId} and schedules.project_id = ${p.projectId}
      and schedules.state <> 'deleted'
    for update`.execute(tx)
  return rows.length === 0 ? undefined : findSchedule(tx, p)
}

/** All schedules of a project that are not deleted, locked in the order of their ids. Two statements, as in `lockSchedule`. */
export async function lockProject(tx: Tx, p: Scope): Promise<Schedule[]> {
  const { rows: locked } = await sql<{ id: string }>`
    select schedules.id
    from carillon.schedules
    where schedules.tenant_id = ${p.tenantId} and schedules.project_id = ${p.projectId} and schedules.state <> 'deleted'
    order by schedules.id
    for update`.execute(tx)
  const { rows } = await sql<Row>`
    select ${SCHEDULE_COLUMNS}
    from ${FROM_SCHEDULES}
    where schedules.id = any(${locked.map(({ id }) => id)}::uuid[])
    order by schedules.id`.execute(tx)
  return rows.map(toSchedule)
}

/** The filters of a page; null: any value. `before` is the last id of the previous page; null: the first page. */
interface ListQuery extends Scope {
  readonly state: ScheduleState | null
  readonly targetKind: string | null
  readonly nameContains: string | null
  readonly before: string | null
  readonly limit: number
}

/** A page of a project's schedules, the newest first. */
export async function listSchedules(tx: Tx, p: ListQuery): Promise<Schedule[]> {
  const { rows } = await sql<Row>`
    select ${SCHEDULE_COLUMNS}
    from ${FROM_SCHEDULES}
    where schedules.id = any(array(${isFiltered(p) ? idsByRow(p) : idsByName(p)}))
    order by schedules.id desc`.execute(tx)
  return rows.map(toSchedule)
}

/** True if a filter other than the name may match only a few schedules of a project. */
function isFiltered({ state, targetKind }: ListQuery): boolean {
  return targetKind !== null || (state !== null && state !== 'active')
}

/** Reads the schedules of the project from the newest on until the page is full. Compares a name only if all other filters match. */
function idsByRow(p: ListQuery): RawBuilder<unknown> {
  return sql`
      select schedules.id
      from carillon.schedules
      where schedules.tenant_id = ${p.tenantId} and schedules.project_id = ${p.projectId}
        and schedules.state <> 'deleted'
        ${and(p.before, (id) => sql`schedules.id < ${id}`)}
        ${and(p.state, (state) => sql`schedules.state = ${state}::carillon.schedule_state`)}
        ${and(p.targetKind, (kind) => sql`schedules.target_kind = ${kind}`)}
        ${and(
          p.nameContains,
          (part) => sql`exists (
            select
            from carillon.schedule_revisions as named
            where named.schedule_id = schedules.id and named.revision = schedules.revision
              and strpos(lower(named.name), lower(${part})) > 0
          )`,
        )}
      order by schedules.id desc
      limit ${p.limit}`
}

/**
 * Reads the index of names from the newest schedule on until the page is full. With `nameContains` it compares every name, and reads a
 * schedule only if the name matches. Without it, it reads the first name of each schedule.
 *
 * `offset 0` keeps the planner from turning the join around. Under row-level security Postgres ignores statistics for operators that
 * could leak values, such as those of enums. If all schedules are active, it would estimate that `state <> 'deleted'` matches
 * no row, and would read and sort the whole project; or it would read the schedules of all tenants.
 */
function idsByName(p: ListQuery): RawBuilder<unknown> {
  return sql`
      select named.schedule_id
      from carillon.schedule_revisions as named
      cross join lateral (
        select
        from carillon.schedules
        where schedules.id = named.schedule_id
          and schedules.tenant_id = ${p.tenantId} and schedules.project_id = ${p.projectId}
          and schedules.state <> 'deleted'
          ${and(p.nameContains, () => sql`schedules.revision = named.revision`)}
          ${and(p.state, (state) => sql`schedules.state = ${state}::carillon.schedule_state`)}
        offset 0
      ) as listed
      where named.tenant_id = ${p.tenantId} and named.project_id = ${p.projectId}
        ${and(p.before, (id) => sql`named.schedule_id < ${id}`)}
        ${p.nameContains === null ? sql`and named.revision = 1` : sql`and strpos(lower(named.name), lower(${p.nameContains})) > 0`}
      order by named.schedule_id desc
      limit ${p.limit}`
}

function and<Value>(value: Value | null, condition: (value: Value) => RawBuilder<unknown>): RawBuilder<unknown> {
  return value === null ? sql`` : sql`and ${condition(value)}`
}

function toSchedule(row: Row): Schedule {
  return {
    id: row.id,
    tenantId: row.tenant_id,
    projectId: row.project_id,
    ownerSubject: row.owner_subject,
    name: row.name,
    state: row.state,
    revision: row.revision,
    cadence: row.cadence,
    target: row.target,
    policy: row.policy,
    grantId: row.grant_id,
    grantExpiresAt: row.grant_expires_at?.getTime() ?? null,
    isGrantRevoked: row.is_grant_revoked,
    nextSlotAt: row.next_slot_at?.getTime() ?? null,
    dueAt: row.due_at?.getTime() ?? null,
    excludedSlots: row.excluded_slots?.map((slot) => slot.getTime()) ?? [],
    runCount: Number(row.run_count),
    failureCount: Number(row.failure_count),
    consecutiveFailures: row.consecutive_failures,
    createdBy: row.created_by_subject,
    createdAt: row.created_at.getTime(),
    updatedBy: row.updated_by_subject,
    updatedAt: row.updated_at?.getTime() ?? null,
    pausedBy: row.paused_by_subject,
    pausedReason: row.paused_reason,
    pausedAt: row.paused_at?.getTime() ?? null,
  }
}
