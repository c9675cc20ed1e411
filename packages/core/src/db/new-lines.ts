import type { RunTrigger } from '@carillon/api'

import { columns, uuid, type RowFrom } from './columns.ts'
import { stampOf } from './now.ts'
import { instantText } from './parameters.ts'
import { sql, type Sql } from './sql.ts'

/** A new line of the ledger. */
export interface NewLine {
  readonly id: string
  readonly scheduleId: string
  readonly tenantId: string
  readonly projectId: string
  readonly revision: number
  readonly scheduledFor: number
  readonly trigger: RunTrigger
  readonly state: 'running' | 'pending' | 'skipped' | 'failed'
  /** What a pending run waits for; null in every other state. */
  readonly waits: NewWait | null
  readonly reason: string | null
  readonly error: string | null
}

/**
 * What a run waits for: until no other run of its schedule is open (`turn`), until a worker takes it (`worker`), or until an instant that
 * a hook named, at most a day ahead (`deferred`). It waits in a lane of its target kind.
 */
export interface NewWait {
  readonly for: 'turn' | 'worker' | 'deferred'
  readonly targetKind: string
  /** Epoch milliseconds; only for `deferred`. */
  readonly until?: number
}

/** Lines to insert. */
export interface NewLines {
  readonly lines: readonly NewLine[]
  /** The worker that holds the lines in state `running`; null if there are none. */
  readonly workerId: string | null
  /** What happens if a slot has a line already: the transaction fails, or the slot keeps that line. */
  readonly onConflict: 'refuse' | 'keep'
  /** Null in production: Postgres' clock decides. */
  readonly now: Date | null
  /** The instant of slots that are claimed ahead of it: no line records an earlier begin. */
  readonly notBefore?: Date | null
}

/** The common table expression `stamp`: one instant for all rows that a statement writes. */
export function stampTable(p: Pick<NewLines, 'now' | 'notBefore'>): Sql<never> {
  return sql`stamp as materialized (select ${stampOf(p.now, p.notBefore)} as at)`
}

const LINE_ID = columns('runs', { id: uuid })

/** A statement that inserts lines and returns their ids. */
export type LinesStatement = Sql<RowFrom<typeof LINE_ID>>

export function linesInsert(p: NewLines): LinesStatement {
  return sql`with ${stampTable(p)} ${runsInsert(p)}`
}

/** The insert of lines, for a statement whose common table expressions include `stampTable`. */
export function runsInsert(p: NewLines): LinesStatement {
  const { lines } = p
  return sql`
    insert into runs (
      schedule_id, scheduled_for, id, tenant_id, project_id, revision, trigger, state, reason, attempt_count, token,
      worker_id, begun_at, started_at, completed_at, error, waits_for, due_at, lane
    )
    select line.schedule_id, line.scheduled_for, line.id, line.tenant_id, line.project_id, line.revision, line.trigger, line.state,
      line.reason, case line.state when 'running' then 1 else 0 end, case line.state when 'running' then 1 else 0 end,
      case line.state when 'running' then ${p.workerId}::uuid end,
      stamp.at,
      case line.state when 'running' then stamp.at end,
      case when line.state in ('skipped', 'failed') then stamp.at end,
      line.error::json,
      line.waits_for,
      case line.waits_for
        when 'turn' then 'infinity'::timestamptz
        when 'worker' then date_trunc('milliseconds', stamp.at)
        when 'deferred' then
          date_trunc('milliseconds', greatest(stamp.at, least(line.deferred_until, stamp.at + interval '1 day')))
      end,
      case when line.waits_for is not null then lane_of(line.target_kind, line.tenant_id) end
    from unnest(
      ${lines.map((line) => line.scheduleId)}::uuid[],
      ${lines.map((line) => instantText(line.scheduledFor))}::timestamptz[],
      ${lines.map((line) => line.id)}::uuid[],
      ${lines.map((line) => line.tenantId)}::text[],
      ${lines.map((line) => line.projectId)}::text[],
      ${lines.map((line) => line.revision)}::integer[],
      ${lines.map((line) => line.trigger)}::run_trigger[],
      ${lines.map((line) => line.state)}::run_state[],
      ${lines.map((line) => line.reason)}::run_reason[],
      ${lines.map((line) => line.error)}::text[],
      ${lines.map((line) => line.waits?.for ?? null)}::run_wait[],
      ${lines.map((line) => line.waits?.targetKind ?? null)}::text[],
      ${lines.map((line) => instantText(line.waits?.until ?? null))}::timestamptz[]
    ) as line(
      schedule_id, scheduled_for, id, tenant_id, project_id, revision, trigger, state, reason, error, waits_for, target_kind,
      deferred_until
    )
    cross join stamp
    ${p.onConflict === 'keep' ? sql`on conflict do nothing` : sql``}
    returning ${LINE_ID}`
}
