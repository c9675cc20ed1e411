import { ATTEMPT_OUTCOMES, RUN_STATES, type RunState } from '@carillon/api'

import { boolean, bytes, columns, json, smallint, text, uuid, word } from '../../db/columns.ts'
import type { Db, Tx } from '../../db/database.ts'
import { nowOf, stampOf } from '../../db/now.ts'
import { sql } from '../../db/sql.ts'
import type { Json } from '../../kernel/json.ts'

/* In every function, `now` is null in production: Postgres' own clock decides (I10). A test passes an instant. */

const COMPLETED_COLUMNS = columns('runs', { lane: text.orNull })

/** The attempt `p.attempt` of a run was ended by a completion, so another completion that names it is a repetition. */
const IS_OVER_BY_COMPLETION = (attempt: number) => sql`
  exists (
    select
    from attempts as over
    where over.schedule_id = runs.schedule_id and over.scheduled_for = runs.scheduled_for and over.attempt = ${attempt}::smallint
      and over.completed_by is not null
  )`

/**
 * Stores a completion in the row of its run, if a worker holds the run or it is detached, and no completion is stored yet. Takes no lock but
 * that of the row. A run that was taken since the statement began is left alone.
 * @returns the lane in which the run waits to be settled, if it is detached; null if a worker settles it; undefined if nothing was written
 */
export async function storeCompletion(
  tx: Tx,
  p: { readonly runId: string; readonly attempt: number; readonly completion: string; readonly now: Date | null },
): Promise<string | null | undefined> {
  const [row] = await sql`
    with seen as materialized (
      select runs.token from runs where runs.id = ${p.runId}
    )
    update runs
    set completion = ${p.completion}::json,
      due_at = case when runs.state = 'detached' then date_trunc('milliseconds', ${stampOf(p.now)}) end
    from seen
    where runs.id = ${p.runId}
      and runs.token = seen.token
      and runs.state in ('running', 'detached')
      and runs.completion is null
      and runs.attempt_count >= ${p.attempt}::smallint
      and not ${IS_OVER_BY_COMPLETION(p.attempt)}
    returning ${COMPLETED_COLUMNS}`.execute(tx)
  return row === undefined ? undefined : row.lane
}

/** What a completion that was not stored is answered by. */
export interface CompletedRun {
  readonly state: RunState
  readonly attemptCount: number
  /** The completion that the row holds; null if it holds none. */
  readonly completion: Json
  /** Which part the attempt that the caller named had in it; null if no completion ended that attempt. */
  readonly outcome: string | null
  readonly result: Json
  readonly error: Json
  readonly isOverByCompletion: boolean
}

/** A run, and the attempt that a completion names; undefined if the caller sees no such run. */
export async function findCompletedRun(
  tx: Tx,
  p: { readonly runId: string; readonly attempt: number },
): Promise<CompletedRun | undefined> {
  const [run] = await sql`
    select ${columns('runs', {
      state: word('run_state', RUN_STATES),
      attemptCount: smallint,
      completion: json().orNull,
    }).with('named', {
      outcome: word('attempt_outcome', ATTEMPT_OUTCOMES).orNull,
      result: json().orNull,
      error: json().orNull,
      isOverByCompletion: boolean.as(sql`coalesce(named.completed_by is not null, false)`),
    })}
    from runs
    left join attempts as named
      on named.schedule_id = runs.schedule_id and named.scheduled_for = runs.scheduled_for and named.attempt = ${p.attempt}::smallint
    where runs.id = ${p.runId}`.execute(tx)
  return run
}

/**
 * Moves the deadline of a detached run, unless it was completed or is to be cancelled. At most once per `p.everyMs`: a more frequent call
 * changes nothing.
 * @returns false if the run cannot be extended any more
 */
export async function extendDeadline(
  tx: Tx,
  p: { readonly runId: string; readonly deadlineMs: number; readonly everyMs: number; readonly now: Date | null },
): Promise<boolean> {
  const rows = await sql`
    with extended as (
      update runs
      set due_at = date_trunc('milliseconds', ${nowOf(p.now)}) + ${p.deadlineMs}::double precision * interval '1 millisecond',
        heartbeat_at = ${nowOf(p.now)}
      where runs.id = ${p.runId}
        and runs.state = 'detached'
        and runs.completion is null
        and runs.cancel_requested_at is null
        and (runs.heartbeat_at is null
          or runs.heartbeat_at + ${p.everyMs}::double precision * interval '1 millisecond' <= ${nowOf(p.now)})
    )
    select ${columns('runs', { id: uuid })}
    from runs
    where runs.id = ${p.runId}
      and runs.state = 'detached'
      and runs.completion is null
      and runs.cancel_requested_at is null`.execute(tx)
  return rows.length > 0
}

/** The secret behind the tokens of callbacks. For workers only. */
export async function readCallbackKey(db: Db): Promise<Buffer> {
  const [row] = await sql`select ${columns('callback', { key: bytes.as(sql`read_callback_key()`) })}`.execute(db)
  if (row === undefined) throw new Error('expected the key of callbacks, got none')
  return row.key
}

/** True if a mac is that of a run of this tenant and project. Reads no run. */
export async function isCallback(
  tx: Tx,
  p: { readonly runId: string; readonly tenantId: string; readonly projectId: string; readonly mac: Buffer },
): Promise<boolean> {
  const isValid = boolean.as(sql`is_callback(${p.runId}::uuid, ${p.tenantId}, ${p.projectId}, ${p.mac})`)
  const [row] = await sql`select ${columns('callback', { isValid })}`.execute(tx)
  return row?.isValid === true
}

/** The target of a detached or running run, as the revision that began it says; undefined if the caller sees no such run. */
export async function findTargetOfRun(tx: Tx, p: { readonly runId: string }): Promise<Json | undefined> {
  const [row] = await sql`
    select ${columns('revisions', { target: json().orNull })}
    from runs
    left join schedule_revisions as revisions
      on revisions.schedule_id = runs.schedule_id and revisions.revision = runs.revision
    where runs.id = ${p.runId}`.execute(tx)
  return row === undefined ? undefined : row.target
}
