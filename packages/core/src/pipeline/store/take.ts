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
import { plainArray } from '../../db/parameters.ts'
import { sql, type Sql } from '../../db/sql.ts'
import { limitLockWait, transact, transactPipelined } from '../../db/transact.ts'
import type { Clock } from '../../kernel/clock.ts'
import { NIL_UUID } from '../../kernel/ids.ts'
import type { HeldRun } from '../../ledger/held-run.ts'
import { HOOK_LOCK_LIMIT_MS } from '../hooks.ts'
import { newTransactionId } from './in-doubt-runs.ts'
import { columnsOf, RUNS_OF_LANE, type LaneFrom, type LanePosition } from './look.ts'

export interface Take {
  readonly runs: readonly HeldRun[]
  /** The last taken position of each lane that had something to take. */
  readonly last: ReadonlyMap<string, LanePosition>
}

interface TakeFrom {
  readonly lanes: readonly LaneFrom[]
  readonly perLane: number
  readonly workerId: string
}

const NOTHING: Take = { runs: [], last: new Map() }

/** How often a take with hooks is repeated because a run changed between the statement that read it and the one that takes it. */
const TRIES_MAX = 10

class ChangedMeanwhileError extends Error {
  override readonly name = 'ChangedMeanwhileError'
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
  p: TakeFrom,
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

/**
 * TAKE for a kind with hooks, in three steps of one transaction: it locks the schedules of due runs, reads the runs by a statement whose
 * snapshot is newer than the locks and asks `admit` about them, and takes them. All of them are taken: those that were not admitted are
 * settled at once.
 */
export async function takeAdmitted<Admission>(
  { db, clock }: { readonly db: Db; readonly clock: Clock },
  p: TakeFrom,
  admit: (tx: Tx, runs: readonly HeldRun[]) => Promise<Admission>,
): Promise<Take & { readonly admission: Admission | undefined }> {
  for (let tries = 1; ; tries += 1) {
    try {
      return await transact(db, clock, async (tx) => {
        await limitLockWait(tx, HOOK_LOCK_LIMIT_MS)
        await newTransactionId(tx)
        const now = clock.databaseNow()
        const due = await lockDue(tx, { ...p, now })
        if (due.length === 0) return { ...NOTHING, admission: undefined }
        const waiting = await readDue(tx, { due, workerId: p.workerId })
        const admission = await admit(tx, waiting.runs)
        const startedAt = await takeRead(tx, { runs: waiting.runs, workerId: p.workerId, now })
        if (startedAt === undefined) throw new ChangedMeanwhileError('a run changed while its kind was asked')
        return { last: lastOf(due, p.lanes), runs: waiting.runs.map((run) => ({ ...run, startedAt })), admission }
      })
    } catch (error) {
      if (!(error instanceof ChangedMeanwhileError) || tries >= TRIES_MAX) throw error
    }
  }
}

/** What a run refers to. Its revision and its grant may be missing. */
const REFERRED_COLUMNS = columns('revisions', {
  target: json().orNull,
  policy: text.orNull.as(sql`revisions.policy::text`),
  grantId: uuid.orNull,
}).with('grants', {
  grantVersion: rowVersion.orNull.as(sql`grants.xmin`),
  grantSubject: text.orNull.as(sql`grants.subject`),
  billingAccountId: text.orNull,
  scopes: text.list.orNull,
  grantScheduleId: uuid.orNull.as(sql`grants.schedule_id`),
})

/** A taken run. */
const TAKEN_COLUMNS = REFERRED_COLUMNS.with('taken', {
  ordinal: integer.as(sql`taken.ordinal::integer`),
  dueAt: instant.present,
  runId: uuid.as(sql`taken.id`),
  scheduleId: uuid,
  scheduledFor: instant,
  tenantId: text,
  projectId: text,
  revision: integer,
  targetKind: text.as(sql`coalesce(revisions.target_kind, taken.present_kind)`),
  trigger: word('run_trigger', RUN_TRIGGERS),
  attempt: smallint.as(sql`taken.attempt_count`),
  token: integer,
  startedAt: instant.present,
  ownerSubject: text,
})

/**
 * The due runs of lanes, and locks on their schedules, because BEGIN decides by which runs are open. Skips schedules that another
 * transaction has locked, so that they do not block their lane.
 */
function dueRuns({ lanes, perLane, workerId, now }: TakeFrom & { readonly now: Date | null }): Sql<never> {
  const { names, dues, ids, slots } = columnsOf(lanes)
  return sql`
      select lanes.ordinal, run.*
      from unnest(${names}::text[], ${dues}::double precision[], ${ids}::uuid[], ${slots}::double precision[])
        with ordinality as lanes(lane, after_due, after_id, after_slot, ordinal)
      cross join lateral (
        select runs.schedule_id, runs.scheduled_for, runs.token, runs.due_at, schedules.owner_subject,
          schedules.target_kind as present_kind
        from runs
        join schedules on schedules.id = runs.schedule_id
        where ${RUNS_OF_LANE}
          and runs.due_at <= ${nowOf(now)}
        order by runs.due_at, runs.schedule_id, runs.scheduled_for
        limit ${perLane}
        for update of schedules skip locked
      ) as run
      where exists (
        select from workers
        where workers.id = ${workerId} and workers.lease_expires_at > ${nowOf(now)}
      )`
}

/**
 * The statement of TAKE. It compares each run again under the lock of its schedule and leaves alone those that changed after its
 * snapshot. `now` is null in production: Postgres' clock decides.
 */
export async function takeDue(db: Db | Tx, p: TakeFrom & { readonly now: Date | null }): Promise<Take> {
  const rows = await sql`
    with stamp as materialized (
      select ${stampOf(p.now)} as at
    ), due as materialized (${dueRuns(p)}
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
  return { runs: rows.map((row) => toHeld(row, p.workerId)), last: lastOf(rows, p.lanes) }
}

const DUE_COLUMNS = columns('due', {
  ordinal: integer.as(sql`due.ordinal::integer`),
  scheduleId: uuid,
  scheduledFor: instant,
  token: integer,
  dueAt: instant.present,
})

type DueRun = RowFrom<typeof DUE_COLUMNS>

/** Locks the schedules of runs that are due. */
async function lockDue(tx: Tx, p: TakeFrom & { readonly now: Date | null }): Promise<DueRun[]> {
  return sql`
    with due as materialized (${dueRuns(p)}
    )
    select ${DUE_COLUMNS}
    from due
    order by due.ordinal, due.due_at, due.schedule_id, due.scheduled_for`.execute(tx)
}

/** A due run as it will be once it is taken. */
const DUE_RUN_COLUMNS = REFERRED_COLUMNS.with('runs', {
  runId: uuid.as(sql`runs.id`),
  scheduleId: uuid,
  scheduledFor: instant,
  tenantId: text,
  projectId: text,
  revision: integer,
  targetKind: text.as(sql`coalesce(revisions.target_kind, schedules.target_kind)`),
  trigger: word('run_trigger', RUN_TRIGGERS),
  attempt: smallint.as(sql`(runs.attempt_count + 1)::smallint`),
  token: integer.as(sql`runs.token + 1`),
  ownerSubject: text.as(sql`schedules.owner_subject`),
})

/** The due runs that have not changed since they were found. */
async function readDue(
  tx: Tx,
  { due, workerId }: { readonly due: readonly DueRun[]; readonly workerId: string },
): Promise<{ readonly runs: readonly HeldRun[] }> {
  const rows = await sql`
    select ${DUE_RUN_COLUMNS}
    from unnest(
      ${plainArray(due.map(({ scheduleId }) => scheduleId))}::uuid[],
      ${plainArray(due.map(({ scheduledFor }) => scheduledFor))}::double precision[],
      ${plainArray(due.map(({ token }) => token))}::integer[],
      ${plainArray(due.map(({ dueAt }) => dueAt))}::double precision[]
    ) with ordinality as due(schedule_id, slot, token, due_at, ordinal)
    join runs on runs.schedule_id = due.schedule_id and runs.scheduled_for = to_timestamp(due.slot / 1000.0)
    join schedules on schedules.id = runs.schedule_id
    left join schedule_revisions as revisions
      on revisions.schedule_id = runs.schedule_id and revisions.revision = runs.revision
    left join execution_grants as grants
      on grants.id = revisions.grant_id and grants.tenant_id = runs.tenant_id and grants.project_id = runs.project_id
    where ${isOpen()} and runs.token = due.token and runs.due_at = to_timestamp(due.due_at / 1000.0)
    order by due.ordinal`.execute(tx)
  // `startedAt` follows when they are taken.
  return { runs: rows.map((row) => toHeld({ ...row, startedAt: 0 }, workerId)) }
}

/**
 * Takes runs as they were read.
 * @returns when they started; undefined if one of them has changed since
 */
async function takeRead(
  tx: Tx,
  p: { readonly runs: readonly HeldRun[]; readonly workerId: string; readonly now: Date | null },
): Promise<number | undefined> {
  const { runs } = p
  if (runs.length === 0) return 0
  const taken = columns('taken', { runId: uuid, startedAt: instant.present })
  const rows = await sql`
    with taken as (
      update runs
      set state = 'running',
        attempt_count = runs.attempt_count + 1,
        token = runs.token + 1,
        worker_id = ${p.workerId},
        started_at = stamp.at,
        due_at = null,
        waits_for = null,
        lane = null
      from (select ${stampOf(p.now)} as at) as stamp, unnest(
        ${plainArray(runs.map(({ runId }) => runId))}::uuid[],
        ${plainArray(runs.map(({ scheduleId }) => scheduleId))}::uuid[],
        ${plainArray(runs.map(({ token }) => token))}::integer[]
      ) as held(id, schedule_id, token)
      where runs.schedule_id = any(${plainArray(runs.map(({ scheduleId }) => scheduleId))}::uuid[])
        and ${isOpen()}
        and runs.id = held.id
        and runs.token = held.token - 1
        and runs.due_at is not null
      returning runs.id as run_id, runs.started_at
    )
    select ${taken} from taken`.execute(tx)
  return rows.length < runs.length ? undefined : rows[0]?.startedAt
}

function lastOf(
  rows: readonly Pick<DueRun, 'ordinal' | 'dueAt' | 'scheduleId' | 'scheduledFor'>[],
  lanes: readonly LaneFrom[],
): ReadonlyMap<string, LanePosition> {
  const last = new Map<string, LanePosition>()
  for (const { ordinal, dueAt, scheduleId, scheduledFor } of rows) {
    const lane = lanes[ordinal - 1]?.lane
    if (lane !== undefined) last.set(lane, { dueAt, scheduleId, slot: scheduledFor })
  }
  return last
}

function toHeld(row: Omit<RowFrom<typeof TAKEN_COLUMNS>, 'ordinal' | 'dueAt'>, workerId: string): HeldRun {
  return {
    runId: row.runId,
    scheduleId: row.scheduleId,
    scheduledFor: row.scheduledFor,
    tenantId: row.tenantId,
    projectId: row.projectId,
    revision: row.revision,
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
