import type { RunReason, RunTrigger } from '@carillon/api'
import { sql, type RawBuilder } from 'kysely'

import { stampOf } from './now.ts'
import { instantText } from './parameters.ts'

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
  readonly reason: RunReason | null
  readonly error: string | null
}

/**
 * What a run waits for: until no other run of its schedule is open (`turn`), or until a worker takes it (`worker`). It waits in a lane of
 * its target kind.
 */
export interface NewWait {
  readonly for: 'turn' | 'worker'
  readonly targetKind: string
}

/** Lines to insert. */
export interface NewLines {
  readonly runs: readonly NewLine[]
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
export function stampTable(p: Pick<NewLines, 'now' | 'notBefore'>): RawBuilder<unknown> {
  return sql`stamp as materialized (select ${stampOf(p.now, p.notBefore)} as at)`
}

/** A statement that inserts lines and returns their ids. */
export type LinesStatement = RawBuilder<{ id: string }>

export function linesInsert(p: NewLines): LinesStatement {
  return sql`with ${stampTable(p)} ${runsInsert(p)}`
}

/** The insert of lines, for a statement whose common table expressions include `stampTable`. */
export function runsInsert(p: NewLines): LinesStatement {
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
      ${runs.map((run) => instantText(run.scheduledFor))}::timestamptz[],
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
