import { boolean, columns, integer, uuid } from '../../db/columns.ts'
import type { Tx } from '../../db/database.ts'
import { isOpen } from '../../db/indexed-sql.ts'
import { sql, type Sql } from '../../db/sql.ts'
import type { Scope } from '../../kernel/scope.ts'

/** The rows of a project that a purge removes. */
export interface PurgeCounts {
  readonly schedules: number
  readonly runs: number
  readonly attempts: number
  /** The lines of the transcripts of runs. */
  readonly transcriptLines: number
  /** The history of the schedules. */
  readonly changes: number
  readonly revisions: number
  readonly grants: number
  readonly secrets: number
  /** Members whose row does not restrict access; the others stay, see `Projects`. */
  readonly members: number
  readonly idempotentAnswers: number
  /** Rows in the tables of modules. */
  readonly moduleRows: number
}

/** The rows that belong to schedules. */
type ScheduleCounts = Pick<PurgeCounts, 'schedules' | 'runs' | 'attempts' | 'transcriptLines' | 'changes' | 'revisions'>

/** The rows that belong to the project itself. */
type ProjectCounts = Omit<PurgeCounts, keyof ScheduleCounts | 'moduleRows'>

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
  const obstacles = columns('obstacles', {
    hasSchedules: boolean.as(sql`exists (
      select
      from schedules
      where schedules.tenant_id = ${p.tenantId} and schedules.project_id = ${p.projectId}
        and schedules.state <> 'deleted'
    )`),
    hasOpenRuns: boolean.as(sql`exists (
      select
      from schedules
      join runs on runs.schedule_id = schedules.id and ${isOpen()}
      where schedules.tenant_id = ${p.tenantId} and schedules.project_id = ${p.projectId}
    )`),
  })
  const [row] = await sql`select ${obstacles}`.execute(tx)
  return { hasSchedules: row?.hasSchedules === true, hasOpenRuns: row?.hasOpenRuns === true }
}

/** The last schedule of `page`, and how many rows its schedules have in each table. */
const PAGE_COUNTS = columns('page', {
  last: uuid.orNull.as(sql`(select page.id from page order by page.id desc limit 1)`),
  schedules: integer.as(sql`count(*)::int`),
  runs: integer.as(sql`coalesce(sum((select count(*) from runs as rows where rows.schedule_id = page.id)), 0)::int`),
  attempts: integer.as(sql`
    coalesce(sum((select count(*) from attempts as rows where rows.schedule_id = page.id)), 0)::int`),
  transcriptLines: integer.as(sql`
    coalesce(sum((select count(*) from transcripts as rows where rows.schedule_id = page.id)), 0)::int`),
  changes: integer.as(sql`
    coalesce(sum((select count(*) from schedule_changes as rows where rows.schedule_id = page.id)), 0)::int`),
  revisions: integer.as(sql`
    coalesce(sum((select count(*) from schedule_revisions as rows where rows.schedule_id = page.id)), 0)::int`),
})

/** Counts the rows of a page of schedules in any state. `last` is the last schedule of the page; null if the page is empty. */
export async function countScheduleRows(
  tx: Tx,
  p: SchedulePage,
): Promise<{ counts: ScheduleCounts; last: string | null }> {
  const [row] = await sql`
    with page as materialized (
      select schedules.id
      from schedules
      where schedules.tenant_id = ${p.tenantId} and schedules.project_id = ${p.projectId}
        and (${p.after}::uuid is null or schedules.id > ${p.after}::uuid)
      order by schedules.id
      limit ${p.limit}
    )
    select ${PAGE_COUNTS}
    from page`.execute(tx)
  if (row === undefined) throw new Error('expected one row of counts, got none')
  const { last, ...counts } = row
  return { counts, last }
}

/** Counts the rows of the project itself. */
export async function countProjectRows(tx: Tx, p: Scope): Promise<ProjectCounts> {
  const counts = columns('project', {
    grants: integer.as(sql`(select count(*)::int from execution_grants as rows where ${isOf(p)})`),
    secrets: integer.as(sql`(select count(*)::int from secrets as rows where ${isOf(p)})`),
    members: integer.as(sql`(select count(*)::int from members as rows where ${isOf(p)} and ${DOES_NOT_RESTRICT})`),
    idempotentAnswers: integer.as(sql`(select count(*)::int from idempotent_answers as rows where ${isOf(p)})`),
  })
  const [row] = await sql`select ${counts}`.execute(tx)
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
  const countUpTo = (table: Sql<never>): Sql<never> => sql`(
    select count(*) from (select from ${table} as rows where rows.schedule_id = schedules.id limit ${p.rowsMax}) as counted
  )`
  const rows = sql`(
      ${countUpTo(sql`runs`)} + ${countUpTo(sql`attempts`)} + ${countUpTo(sql`transcripts`)}
      + ${countUpTo(sql`schedule_changes`)} + ${countUpTo(sql`schedule_revisions`)}
      + ${countUpTo(sql`slot_backlogs`)}
    )::int`
  return sql`
    select ${columns('schedules', { id: uuid, rows: integer.as(rows) })}
    from schedules
    where schedules.tenant_id = ${p.tenantId} and schedules.project_id = ${p.projectId} and schedules.state = 'deleted'
      and not exists (
        select
        from runs
        where runs.schedule_id = schedules.id and ${isOpen()}
      )
    order by schedules.id
    limit ${p.limit}
    for update of schedules`.execute(tx)
}

/** How many rows `deleteWhole` removed. */
const REMOVED_COUNTS = columns('removed', {
  schedules: integer.as(sql`(select count(*)::int from gone)`),
  runs: integer.as(sql`(select count(*)::int from runs)`),
  attempts: integer.as(sql`(select count(*)::int from attempts)`),
  transcriptLines: integer.as(sql`(select count(*)::int from transcripts)`),
  changes: integer.as(sql`(select count(*)::int from changes)`),
  revisions: integer.as(sql`(select count(*)::int from revisions)`),
})

/**
 * Removes schedules with all their rows, in one statement, because foreign keys are checked at its end. Call with the schedules locked.
 * Backlogs are removed but not counted: they stand for lines that were never inserted.
 */
export async function deleteWhole(tx: Tx, p: Scope & { scheduleIds: readonly string[] }): Promise<ScheduleCounts> {
  const isOfThem = sql`${isOf(p)} and rows.schedule_id = any(${p.scheduleIds}::uuid[])`
  const [row] = await sql`
    with runs as (
      delete from runs as rows where ${isOfThem} returning true
    ), attempts as (
      delete from attempts as rows where ${isOfThem} returning true
    ), transcripts as (
      delete from transcripts as rows where ${isOfThem} returning true
    ), changes as (
      delete from schedule_changes as rows where ${isOfThem} returning true
    ), revisions as (
      delete from schedule_revisions as rows where ${isOfThem} returning true
    ), backlogs as (
      delete from slot_backlogs as rows where ${isOfThem}
    ), gone as (
      delete from schedules as rows
      where ${isOf(p)} and rows.id = any(${p.scheduleIds}::uuid[]) and rows.state = 'deleted'
      returning true
    )
    select ${REMOVED_COUNTS}`.execute(tx)
  if (row === undefined) throw new Error('expected one row of counts, got none')
  return row
}

export function deleteRevisions(tx: Tx, p: Portion): Promise<number> {
  return deleteRows(tx, sql`schedule_revisions`, p, sql`rows.schedule_id = ${p.scheduleId}`)
}

export function deleteBacklogs(tx: Tx, p: Portion): Promise<number> {
  return deleteRows(tx, sql`slot_backlogs`, p, sql`rows.schedule_id = ${p.scheduleId}`)
}

export function deleteChanges(tx: Tx, p: Portion): Promise<number> {
  return deleteRows(tx, sql`schedule_changes`, p, sql`rows.schedule_id = ${p.scheduleId}`)
}

/**
 * Removes the earliest attempts, by a range of the primary key, so that Postgres uses the index whatever row counts it estimates. With a
 * join to a list of keys it may choose a nested loop that takes seconds.
 */
export async function deleteAttempts(tx: Tx, p: Portion): Promise<number> {
  const rows = await sql`
    delete from attempts as rows
    where ${isOf(p)} and rows.schedule_id = ${p.scheduleId} and (rows.scheduled_for, rows.attempt) <= (
      select first.scheduled_for, first.attempt
      from (
        select rows.scheduled_for, rows.attempt
        from attempts as rows
        where ${isOf(p)} and rows.schedule_id = ${p.scheduleId}
        order by rows.scheduled_for, rows.attempt
        limit ${p.limit}
      ) as first
      order by first.scheduled_for desc, first.attempt desc
      limit 1
    )
    returning true`.execute(tx)
  return rows.length
}

/** Removes the earliest lines of transcripts, by a range of the primary key as well. */
export async function deleteTranscripts(tx: Tx, p: Portion): Promise<number> {
  const rows = await sql`
    delete from transcripts as rows
    where ${isOf(p)} and rows.schedule_id = ${p.scheduleId} and (rows.scheduled_for, rows.token, rows.seq) <= (
      select first.scheduled_for, first.token, first.seq
      from (
        select rows.scheduled_for, rows.token, rows.seq
        from transcripts as rows
        where ${isOf(p)} and rows.schedule_id = ${p.scheduleId}
        order by rows.scheduled_for, rows.token, rows.seq
        limit ${p.limit}
      ) as first
      order by first.scheduled_for desc, first.token desc, first.seq desc
      limit 1
    )
    returning true`.execute(tx)
  return rows.length
}

/** Removes the runs of the earliest slots, by a range of the primary key as well. */
export async function deleteRuns(tx: Tx, p: Portion): Promise<number> {
  const rows = await sql`
    delete from runs as rows
    where ${isOf(p)} and rows.schedule_id = ${p.scheduleId} and rows.scheduled_for <= (
      select max(first.scheduled_for)
      from (
        select rows.scheduled_for
        from runs as rows
        where ${isOf(p)} and rows.schedule_id = ${p.scheduleId}
        order by rows.scheduled_for
        limit ${p.limit}
      ) as first
    )
    returning true`.execute(tx)
  return rows.length
}

export function deleteGrants(tx: Tx, p: Scope & { limit: number }): Promise<number> {
  return deleteRows(tx, sql`execution_grants`, p)
}

export function deleteSecrets(tx: Tx, p: Scope & { limit: number }): Promise<number> {
  return deleteRows(tx, sql`secrets`, p)
}

export function deleteMembers(tx: Tx, p: Scope & { limit: number }): Promise<number> {
  return deleteRows(tx, sql`members`, p, DOES_NOT_RESTRICT)
}

export function deleteIdempotentAnswers(tx: Tx, p: Scope & { limit: number }): Promise<number> {
  return deleteRows(tx, sql`idempotent_answers`, p)
}

export async function deleteRows(
  tx: Tx,
  table: Sql<never>,
  p: Scope & { limit: number },
  which: Sql<never> = sql`true`,
): Promise<number> {
  const rows = await sql`
    delete from ${table} as target
    where target.tenant_id = ${p.tenantId} and target.project_id = ${p.projectId}
      and target.ctid = any(array(select rows.ctid from ${table} as rows where ${isOf(p)} and ${which} limit ${p.limit}))
    returning true`.execute(tx)
  return rows.length
}

export function isOf({ tenantId, projectId }: Scope): Sql<never> {
  return sql`rows.tenant_id = ${tenantId} and rows.project_id = ${projectId}`
}
