import { SCHEDULE_STATES, STORED_SCHEDULE_STATES, type ScheduleState } from '@carillon/api'

import { bigint, boolean, columns, instant, integer, json, text, uuid, word } from '../../db/columns.ts'
import type { Db, Tx } from '../../db/database.ts'
import { CADENCE_COLUMN } from '../../db/shared-columns.ts'
import { sql, type Sql } from '../../db/sql.ts'
import type { Scope } from '../../kernel/scope.ts'
import type { Schedule } from '../../ledger/records.ts'

const SCHEDULE_COLUMNS = columns('schedules', {
  id: uuid,
  tenantId: text,
  projectId: text,
  ownerSubject: text,
  name: text.as(sql`revisions.name`),
  // None of these statements returns a deleted schedule.
  state: word('schedule_state', STORED_SCHEDULE_STATES).only(SCHEDULE_STATES),
  revision: integer,
  cadence: json<Schedule['cadence']>().as(CADENCE_COLUMN),
  target: json<Schedule['target']>().as(sql`revisions.target`),
  policy: json<Schedule['policy']>().as(sql`revisions.policy`),
  grantId: uuid,
  grantExpiresAt: instant.orNull.as(sql`grants.expires_at`),
  isGrantRevoked: boolean.as(sql`grants.id is null or grants.revoked_at is not null`),
  nextSlotAt: instant.orNull,
  dueAt: instant.orNull,
  excludedSlots: instant.list.as(sql`coalesce(schedules.excluded_slots, '{}')`),
  runCount: bigint,
  failureCount: bigint,
  consecutiveFailures: integer,
  createdBy: text.as(sql`schedules.created_by_subject`),
  createdAt: instant,
  updatedBy: text.orNull.as(sql`schedules.updated_by_subject`),
  updatedAt: instant.orNull,
  pausedBy: text.orNull.as(sql`schedules.paused_by_subject`),
  pausedReason: text.orNull,
  pausedAt: instant.orNull,
})

const FROM_SCHEDULES = sql`
  schedules
  join schedule_revisions as revisions
    on revisions.schedule_id = schedules.id and revisions.revision = schedules.revision
  left join execution_grants as grants on grants.id = schedules.grant_id`

/** A schedule that is not deleted; undefined also if the schedule belongs to another project (I9). */
export async function findSchedule(db: Db | Tx, p: Scope & { id: string }): Promise<Schedule | undefined> {
  const [schedule] = await sql`
    select ${SCHEDULE_COLUMNS}
    from ${FROM_SCHEDULES}
    where schedules.id = ${p.id} and schedules.tenant_id = ${p.tenantId} and schedules.project_id = ${p.projectId}
      and schedules.state <> 'deleted'`.execute(db)
  return schedule
}

/**
 * `findSchedule` with the row locked for the rest of the transaction. It takes two statements: a single one that waited for the lock
 * of an edit would join the current row with the revisions of an older snapshot, and find no schedule.
 */
export async function lockSchedule(tx: Tx, p: Scope & { id: string }): Promise<Schedule | undefined> {
  const locked = await sql`
    select
    from schedules
    where schedules.id = ${p.id} and schedules.tenant_id = ${p.tenantId} and schedules.project_id = ${p.projectId}
      and schedules.state <> 'deleted'
    for update`.execute(tx)
  return locked.length === 0 ? undefined : findSchedule(tx, p)
}

const ID_COLUMN = columns('schedules', { id: uuid })

/** All schedules of a project that are not deleted, locked in the order of their ids. Two statements, as in `lockSchedule`. */
export async function lockProject(tx: Tx, p: Scope): Promise<Schedule[]> {
  const locked = await sql`
    select ${ID_COLUMN}
    from schedules
    where schedules.tenant_id = ${p.tenantId} and schedules.project_id = ${p.projectId} and schedules.state <> 'deleted'
    order by schedules.id
    for update`.execute(tx)
  return sql`
    select ${SCHEDULE_COLUMNS}
    from ${FROM_SCHEDULES}
    where schedules.id = any(${locked.map(({ id }) => id)}::uuid[])
    order by schedules.id`.execute(tx)
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
  return sql`
    select ${SCHEDULE_COLUMNS}
    from ${FROM_SCHEDULES}
    where schedules.id = any(array(${isFiltered(p) ? idsByRow(p) : idsByName(p)}))
    order by schedules.id desc`.execute(tx)
}

/** True if a filter other than the name may match only a few schedules of a project. */
function isFiltered({ state, targetKind }: ListQuery): boolean {
  return targetKind !== null || (state !== null && state !== 'active')
}

/** Reads the schedules of the project from the newest on until the page is full. Compares a name only if all other filters match. */
function idsByRow(p: ListQuery): Sql<never> {
  return sql`
      select schedules.id
      from schedules
      where schedules.tenant_id = ${p.tenantId} and schedules.project_id = ${p.projectId}
        and schedules.state <> 'deleted'
        ${and(p.before, (id) => sql`schedules.id < ${id}`)}
        ${and(p.state, (state) => sql`schedules.state = ${state}::schedule_state`)}
        ${and(p.targetKind, (kind) => sql`schedules.target_kind = ${kind}`)}
        ${and(
          p.nameContains,
          (part) => sql`exists (
            select
            from schedule_revisions as named
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
function idsByName(p: ListQuery): Sql<never> {
  return sql`
      select named.schedule_id
      from schedule_revisions as named
      cross join lateral (
        select
        from schedules
        where schedules.id = named.schedule_id
          and schedules.tenant_id = ${p.tenantId} and schedules.project_id = ${p.projectId}
          and schedules.state <> 'deleted'
          ${and(p.nameContains, () => sql`schedules.revision = named.revision`)}
          ${and(p.state, (state) => sql`schedules.state = ${state}::schedule_state`)}
        offset 0
      ) as listed
      where named.tenant_id = ${p.tenantId} and named.project_id = ${p.projectId}
        ${and(p.before, (id) => sql`named.schedule_id < ${id}`)}
        ${p.nameContains === null ? sql`and named.revision = 1` : sql`and strpos(lower(named.name), lower(${p.nameContains})) > 0`}
      order by named.schedule_id desc
      limit ${p.limit}`
}

function and<Value>(value: Value | null, condition: (value: Value) => Sql<never>): Sql<never> {
  return value === null ? sql`` : sql`and ${condition(value)}`
}
