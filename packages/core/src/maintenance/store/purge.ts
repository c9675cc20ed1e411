import { sql, type RawBuilder } from 'kysely'

import type { Tx } from '../../db/database.ts'
import { isOpen } from '../../db/indexed-sql.ts'
import type { Scope } from '../../kernel/scope.ts'

/** The rows of a project that a purge removes. */
export interface PurgeCounts {
  readonly schedules: number
  readonly runs: number
  readonly attempts: number
  /** The history of the schedules. */
  readonly changes: number
  readonly revisions: number
  readonly grants: number
  readonly secrets: number
  /** Members whose row does not restrict access; the others stay, see `Projects`. */
  readonly members: number
  readonly idempotentAnswers: number
}

/** The rows that belong to schedules. */
type ScheduleCounts = Pick<PurgeCounts, 'schedules' | 'runs' | 'attempts' | 'changes' | 'revisions'>

/** The rows that belong to the project itself. */
type ProjectCounts = Omit<PurgeCounts, keyof ScheduleCounts>

/** Up to `limit` schedules of a project after an id. */
export type SchedulePage = Scope & { readonly after: string | null; readonly limit: number }

/** A schedule that can be removed with all its rows. */
export interface RemovableSchedule {
  readonly id: string
  /** How many rows it has in other tables; of each table at most `rowsMax` are counted. */
  readonly rows: number
}

/** Up to `limit` rows of one schedule. */
type Portion = Scope & { readonly scheduleId: string; readonly limit: number }

/** A subject without a row has the full role of its credential. The row of an admin does not limit that, so removing it grants nothing. */
const DOES_NOT_RESTRICT = sql`rows.role = 'admin' and rows.removed_at is null`

/*
 * Row-level security limits every statement here to the transaction's project, and every statement also names the project: a purge must
 * not depend on one guard (I9).
 */

/** Why a project cannot be purged: schedules that are not deleted, open runs. */
export async function findPurgeObstacles(tx: Tx, p: Scope): Promise<{ hasSchedules: boolean; hasOpenRuns: boolean }> {
  const { rows } = await sql<{ has_schedules: boolean; has_open_runs: boolean }>`
    select
      exists (
        select
        from carillon.schedules
        where schedules.tenant_id = ${p.tenantId} and schedules.project_id = ${p.projectId}
          and schedules.state <> 'deleted'
      ) as has_schedules,
      exists (
        select
        from carillon.schedules
        join carillon.runs on runs.schedule_id = schedules.id and ${isOpen()}
        where schedules.tenant_id = ${p.tenantId} and schedules.project_id = ${p.projectId}
      ) as has_open_runs`.execute(tx)
  const [row] = rows
  return { hasSchedules: row?.has_schedules === true, hasOpenRuns: row?.has_open_runs === true }
}

/** Counts the rows of a page of schedules in any state. `last` is the last schedule of the page; null if the page is empty. */
export async function countScheduleRows(
  tx: Tx,
  p: SchedulePage,
): Promise<{ counts: ScheduleCounts; last: string | null }> {
  const { rows } = await sql<{
    last: string | null
    schedules: number
    runs: number
    attempts: number
    changes: number
    revisions: number
  }>`
    with page as materialized (
      select schedules.id
      from carillon.schedules
      where schedules.tenant_id = ${p.tenantId} and schedules.project_id = ${p.projectId}
        and (${p.after}::uuid is null or schedules.id > ${p.after}::uuid)
      order by schedules.id
      limit ${p.limit}
    )
    select
      (select page.id from page order by page.id desc limit 1) as last,
      count(*)::int as schedules,
      coalesce(sum((select count(*) from carillon.runs as rows where rows.schedule_id = page.id)), 0)::int as runs,
      coalesce(sum((select count(*) from carillon.attempts as rows where rows.schedule_id = page.id)), 0)::int as attempts,
      coalesce(sum((
        select count(*) from carillon.schedule_changes as rows where rows.schedule_id = page.id
      )), 0)::int as changes,
      coalesce(sum((
        select count(*) from carillon.schedule_revisions as rows where rows.schedule_id = page.id
      )), 0)::int as revisions
    from page`.execute(tx)
  const [row] = rows
  if (row === undefined) throw new Error('expected one row of counts, got none')
  const { last, ...counts } = row
  return { counts, last }
}

/** Counts the rows of the project itself. */
export async function countProjectRows(tx: Tx, p: Scope): Promise<ProjectCounts> {
  const { rows } = await sql<ProjectCounts>`
    select
      (select count(*)::int from carillon.execution_grants as rows where ${isOf(p)}) as grants,
      (select count(*)::int from carillon.secrets as rows where ${isOf(p)}) as secrets,
      (select count(*)::int from carillon.members as rows where ${isOf(p)} and ${DOES_NOT_RESTRICT}) as members,
      (select count(*)::int from carillon.idempotent_answers as rows where ${isOf(p)}) as "idempotentAnswers"`.execute(
    tx,
  )
  const [row] = rows
  if (row === undefined) throw new Error('expected one row of counts, got none')
  return row
}

/**
 * Locks schedules that can be removed: deleted, without an open run. No run can begin after that: begin takes the same lock and sees
 * that the schedule is deleted.
 */
export async function lockRemovable(
  tx: Tx,
  p: Scope & { limit: number; rowsMax: number },
): Promise<RemovableSchedule[]> {
  const countUpTo = (table: RawBuilder<unknown>): RawBuilder<unknown> => sql`(
    select count(*) from (select from ${table} as rows where rows.schedule_id = schedules.id limit ${p.rowsMax}) as counted
  )`
  const { rows } = await sql<{ id: string; rows: number }>`
    select schedules.id,
      (
        ${countUpTo(sql`carillon.runs`)} + ${countUpTo(sql`carillon.attempts`)}
        + ${countUpTo(sql`carillon.schedule_changes`)} + ${countUpTo(sql`carillon.schedule_revisions`)}
        + ${countUpTo(sql`carillon.slot_backlogs`)}
      )::int as rows
    from carillon.schedules
    where schedules.tenant_id = ${p.tenantId} and schedules.project_id = ${p.projectId} and schedules.state = 'deleted'
      and not exists (
        select
        from carillon.runs
        where runs.schedule_id = schedules.id and ${isOpen()}
      )
    order by schedules.id
    limit ${p.limit}
    for update of schedules`.execute(tx)
  return rows.map(({ id, rows }) => ({ id, rows }))
}

/**
 * Removes schedules with all their rows, in one statement, because foreign keys are checked at its end. Call with the schedules locked.
 * Backlogs are removed but not counted: they stand for lines that were never inserted.
 */
export async function deleteWhole(tx: Tx, p: Scope & { scheduleIds: readonly string[] }): Promise<ScheduleCounts> {
  const isOfThem = sql`${isOf(p)} and rows.schedule_id = any(${p.scheduleIds}::uuid[])`
  const { rows } = await sql<ScheduleCounts>`
    with runs as (
      delete from carillon.runs as rows where ${isOfThem} returning true
    ), attempts as (
      delete from carillon.attempts as rows where ${isOfThem} returning true
    ), changes as (
      delete from carillon.schedule_changes as rows where ${isOfThem} returning true
    ), revisions as (
      delete from carillon.schedule_revisions as rows where ${isOfThem} returning true
    ), backlogs as (
      delete from carillon.slot_backlogs as rows where ${isOfThem}
    ), gone as (
      delete from carillon.schedules as rows
      where ${isOf(p)} and rows.id = any(${p.scheduleIds}::uuid[]) and rows.state = 'deleted'
      returning true
    )
    select
      (select count(*)::int from gone) as schedules,
      (select count(*)::int from runs) as runs,
      (select count(*)::int from attempts) as attempts,
      (select count(*)::int from changes) as changes,
      (select count(*)::int from revisions) as revisions`.execute(tx)
  const [row] = rows
  if (row === undefined) throw new Error('expected one row of counts, got none')
  return row
}

export function deleteRevisions(tx: Tx, p: Portion): Promise<number> {
  return deleteRows(tx, sql`carillon.schedule_revisions`, p, sql`rows.schedule_id = ${p.scheduleId}`)
}

export function deleteBacklogs(tx: Tx, p: Portion): Promise<number> {
  return deleteRows(tx, sql`carillon.slot_backlogs`, p, sql`rows.schedule_id = ${p.scheduleId}`)
}

export function deleteChanges(tx: Tx, p: Portion): Promise<number> {
  return deleteRows(tx, sql`carillon.schedule_changes`, p, sql`rows.schedule_id = ${p.scheduleId}`)
}

/**
 * Removes the earliest attempts, by a range of the primary key, so that Postgres uses the index whatever row counts it estimates. With a
 * join to a list of keys it may choose a nested loop that takes seconds.
 */
export async function deleteAttempts(tx: Tx, p: Portion): Promise<number> {
  const { numAffectedRows = 0n } = await sql`
    delete from carillon.attempts as rows
    where ${isOf(p)} and rows.schedule_id = ${p.scheduleId} and (rows.scheduled_for, rows.attempt) <= (
      select first.scheduled_for, first.attempt
      from (
        select rows.scheduled_for, rows.attempt
        from carillon.attempts as rows
        where ${isOf(p)} and rows.schedule_id = ${p.scheduleId}
        order by rows.scheduled_for, rows.attempt
        limit ${p.limit}
      ) as first
      order by first.scheduled_for desc, first.attempt desc
      limit 1
    )`.execute(tx)
  return Number(numAffectedRows)
}

/** Removes the runs of the earliest slots, by a range of the primary key as well. */
export async function deleteRuns(tx: Tx, p: Portion): Promise<number> {
  const { numAffectedRows = 0n } = await sql`
    delete from carillon.runs as rows
    where ${isOf(p)} and rows.schedule_id = ${p.scheduleId} and rows.scheduled_for <= (
      select max(first.scheduled_for)
      from (
        select rows.scheduled_for
        from carillon.runs as rows
        where ${isOf(p)} and rows.schedule_id = ${p.scheduleId}
        order by rows.scheduled_for
        limit ${p.limit}
      ) as first
    )`.execute(tx)
  return Number(numAffectedRows)
}

export function deleteGrants(tx: Tx, p: Scope & { limit: number }): Promise<number> {
  return deleteRows(tx, sql`carillon.execution_grants`, p)
}

export function deleteSecrets(tx: Tx, p: Scope & { limit: number }): Promise<number> {
  return deleteRows(tx, sql`carillon.secrets`, p)
}

export function deleteMembers(tx: Tx, p: Scope & { limit: number }): Promise<number> {
  return deleteRows(tx, sql`carillon.members`, p, DOES_NOT_RESTRICT)
}

export function deleteIdempotentAnswers(tx: Tx, p: Scope & { limit: number }): Promise<number> {
  return deleteRows(tx, sql`carillon.idempotent_answers`, p)
}

async function deleteRows(
  tx: Tx,
  table: RawBuilder<unknown>,
  p: Scope & { limit: number },
  which: RawBuilder<unknown> = sql`true`,
): Promise<number> {
  const { numAffectedRows = 0n } = await sql`
    delete from ${table} as target
    where target.tenant_id = ${p.tenantId} and target.project_id = ${p.projectId}
      and target.ctid = any(array(select rows.ctid from ${table} as rows where ${isOf(p)} and ${which} limit ${p.limit}))`.execute(
    tx,
  )
  return Number(numAffectedRows)
}

function isOf({ tenantId, projectId }: Scope): RawBuilder<unknown> {
  return sql`rows.tenant_id = ${tenantId} and rows.project_id = ${projectId}`
}
