import { RUN_TRIGGERS } from '@carillon/api'

import {
  columns,
  instant,
  integer,
  json,
  rowVersion,
  smallint,
  text,
  uuid,
  word,
  type RowFrom,
} from '../../db/columns.ts'
import type { Db, Tx } from '../../db/database.ts'
import { isOpen } from '../../db/indexed-sql.ts'
import { nowOf, stampOf } from '../../db/now.ts'
import { sql } from '../../db/sql.ts'
import { transactPipelined } from '../../db/transact.ts'
import type { Clock } from '../../kernel/clock.ts'
import { NIL_UUID } from '../../kernel/ids.ts'
import type { HeldRun } from '../../ledger/held-run.ts'
import { newTransactionId } from './in-doubt-runs.ts'
import { columnsOf, RUNS_OF_LANE, type LaneFrom, type LanePosition } from './look.ts'

export interface Take {
  readonly runs: readonly HeldRun[]
  /** The last taken position of each lane that had something to take. */
  readonly last: ReadonlyMap<string, LanePosition>
}

/**
 * TAKE: starts the next attempt of waiting runs that are due, under this worker's lease and a new fencing token (I12), at most
 * `perLane` of each lane. A worker without a live lease gets nothing.
 *
 * The transaction gets its id before the statement is sent. If the answer is lost, the search for the taken runs can wait
 * until every earlier transaction is over (see `InDoubtCommits`). A statement that commits by itself has no id while it waits for
 * a table lock: the search would end too early, and the runs would be taken afterwards without a worker that knows of them.
 */
export async function takeWaiting(
  { db, clock }: { readonly db: Db; readonly clock: Clock },
  p: { readonly lanes: readonly LaneFrom[]; readonly perLane: number; readonly workerId: string },
): Promise<Take> {
  const { result } = await transactPipelined(db, clock, {
    work: async (tx) => {
      await newTransactionId(tx)
      const taking = takeDue(tx, { ...p, now: clock.databaseNow() })
      // The commit is sent right behind the statement, without waiting for its answer.
      return { result: { taking }, last: taking, notBefore: null }
    },
    look: () => Promise.resolve(),
  })
  return result.taking
}

/** A taken run. Its revision and its grant may be missing. */
const TAKEN_COLUMNS = columns('taken', {
  ordinal: integer.as(sql`taken.ordinal::integer`),
  dueAt: instant.present,
  runId: uuid.as(sql`taken.id`),
  scheduleId: uuid,
  scheduledFor: instant,
  tenantId: text,
  projectId: text,
  targetKind: text.as(sql`coalesce(revisions.target_kind, taken.present_kind)`),
  trigger: word('run_trigger', RUN_TRIGGERS),
  attempt: smallint.as(sql`taken.attempt_count`),
  token: integer,
  startedAt: instant.present,
  ownerSubject: text,
})
  .with('revisions', {
    target: json().orNull,
    policy: text.orNull.as(sql`revisions.policy::text`),
    grantId: uuid.orNull,
  })
  .with('grants', {
    grantVersion: rowVersion.orNull.as(sql`grants.xmin`),
    grantSubject: text.orNull.as(sql`grants.subject`),
    billingAccountId: text.orNull,
    scopes: text.list.orNull,
    grantScheduleId: uuid.orNull.as(sql`grants.schedule_id`),
  })

/**
 * The statement of TAKE. It locks the schedules of the runs, because BEGIN decides by which runs are open, and skips schedules that
 * another transaction has locked, so that they do not block their lane. It compares each run again under the lock and
 * leaves alone those that changed after its snapshot. `now` is null in production: Postgres' clock decides.
 */
export async function takeDue(
  db: Db | Tx,
  p: { lanes: readonly LaneFrom[]; perLane: number; workerId: string; now: Date | null },
): Promise<Take> {
  const { names, dues, ids, slots } = columnsOf(p.lanes)
  const rows = await sql`
    with stamp as materialized (
      select ${stampOf(p.now)} as at
    ), due as materialized (
      select lanes.ordinal, run.*
      from unnest(${names}::text[], ${dues}::double precision[], ${ids}::uuid[], ${slots}::double precision[])
        with ordinality as lanes(lane, after_due, after_id, after_slot, ordinal)
      cross join lateral (
        select runs.schedule_id, runs.scheduled_for, runs.token, runs.due_at, schedules.owner_subject,
          schedules.target_kind as present_kind
        from runs
        join schedules on schedules.id = runs.schedule_id
        where ${RUNS_OF_LANE}
          and runs.due_at <= ${nowOf(p.now)}
        order by runs.due_at, runs.schedule_id, runs.scheduled_for
        limit ${p.perLane}
        for update of schedules skip locked
      ) as run
      where exists (
        select from workers
        where workers.id = ${p.workerId} and workers.lease_expires_at > ${nowOf(p.now)}
      )
    ), taken as (
      update runs
      set state = 'running',
        attempt_count = runs.attempt_count + 1,
        token = runs.token + 1,
        worker_id = ${p.workerId},
        started_at = (select at from stamp),
        due_at = null,
        waits_for = null,
        lane = null
      from due
      -- Uses the index of open runs. The index of waiting runs starts with the lane, which is not known here.
      where runs.schedule_id = any(array(select schedule_id from due))
        and ${isOpen()}
        and runs.schedule_id = due.schedule_id
        and runs.scheduled_for = due.scheduled_for
        and runs.token = due.token
        and runs.due_at is not distinct from due.due_at
      returning due.ordinal, due.due_at, runs.id, runs.schedule_id, runs.scheduled_for, runs.tenant_id, runs.project_id,
        runs.revision, runs.trigger, runs.attempt_count, runs.token, runs.started_at, due.owner_subject, due.present_kind
    )
    select ${TAKEN_COLUMNS}
    from taken
    -- If the revision is missing, the run is taken all the same, so that it fails and says why.
    left join schedule_revisions as revisions
      on revisions.schedule_id = taken.schedule_id and revisions.revision = taken.revision
    left join execution_grants as grants
      on grants.id = revisions.grant_id and grants.tenant_id = taken.tenant_id and grants.project_id = taken.project_id
    order by taken.ordinal, taken.due_at, taken.schedule_id, taken.scheduled_for`.execute(db)
  const last = new Map<string, LanePosition>()
  for (const { ordinal, dueAt, scheduleId, scheduledFor } of rows) {
    const lane = p.lanes[ordinal - 1]?.lane
    if (lane !== undefined) last.set(lane, { dueAt, scheduleId, slot: scheduledFor })
  }
  return { runs: rows.map((row) => toHeld(row, p.workerId)), last }
}

function toHeld(row: RowFrom<typeof TAKEN_COLUMNS>, workerId: string): HeldRun {
  return {
    runId: row.runId,
    scheduleId: row.scheduleId,
    scheduledFor: row.scheduledFor,
    tenantId: row.tenantId,
    projectId: row.projectId,
    targetKind: row.targetKind,
    trigger: row.trigger,
    attempt: row.attempt,
    token: row.token,
    workerId,
    startedAt: row.startedAt,
    target: row.target,
    policy: row.policy ?? '',
    grant: {
      id: row.grantId ?? NIL_UUID,
      version: row.grantVersion ?? '0',
      // Without a grant there are no scopes, so the attempt is refused.
      subject: row.grantSubject ?? '',
      billingAccountId: row.billingAccountId,
      scopes: row.scopes ?? [],
      scheduleId: row.grantScheduleId,
    },
    ownerSubject: row.ownerSubject,
  }
}
