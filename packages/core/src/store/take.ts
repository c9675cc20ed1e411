import { sql } from 'kysely'

import { columnsOf, type LaneFrom, type LanePlace } from './agenda.ts'
import type { Db, Tx } from './database.ts'
import { nowOf, stampOf } from './now.ts'
import { isOpen } from './open-runs.ts'
import type { TakenRun } from './taken-run.ts'

export interface Take {
  readonly runs: readonly TakenRun[]
  /** Of each lane of which something was taken, the last position. */
  readonly last: ReadonlyMap<string, LanePlace>
}

interface Row {
  ordinal: number
  due_at: Date
  id: string
  schedule_id: string
  scheduled_for: Date
  tenant_id: string
  project_id: string
  target_kind: string
  trigger: 'schedule' | 'manual'
  attempt_count: number
  token: number
  started_at: Date
  target: unknown
  policy: string | null
  grant_id: string | null
  grant_version: string | null
  grant_subject: string | null
  billing_account_id: string | null
  scopes: string[] | null
  grant_schedule_id: string | null
  owner_subject: string
}

/**
 * TAKE: waiting runs that are due start their next attempt under this worker's lease and a new fence (I12), at most `perLane` of
 * each lane. In one statement.
 *
 * It locks their schedules, for begin decides by which runs are open, and passes over those that somebody holds: they must not
 * block their lane. A run that changed after the statement's snapshot is left alone, for its row is looked at once more. A
 * worker without a live lease gets nothing.
 */
export async function takeDue(
  db: Db | Tx,
  p: { lanes: readonly LaneFrom[]; perLane: number; workerId: string; now: Date | null },
): Promise<Take> {
  const { names, dues, ids, slots } = columnsOf(p.lanes)
  const { rows } = await sql<Row>`
    with stamp as materialized (
      select ${stampOf(p.now)} as at
    ), due as materialized (
      select lanes.ordinal, run.*
      from unnest(${names}::text[], ${dues}::double precision[], ${ids}::uuid[], ${slots}::double precision[])
        with ordinality as lanes(lane, after_due, after_id, after_slot, ordinal)
      cross join lateral (
        select runs.schedule_id, runs.scheduled_for, runs.token, runs.due_at, schedules.owner_subject,
          schedules.target_kind as present_kind
        from carillon.runs
        join carillon.schedules on schedules.id = runs.schedule_id
        where runs.lane = lanes.lane
          and runs.due_at is not null
          and (runs.due_at, runs.schedule_id, runs.scheduled_for) >
            (to_timestamp(lanes.after_due / 1000.0), lanes.after_id, to_timestamp(lanes.after_slot / 1000.0))
          and runs.due_at <= ${nowOf(p.now)}
        order by runs.due_at, runs.schedule_id, runs.scheduled_for
        limit ${p.perLane}
        for update of schedules skip locked
      ) as run
      where exists (
        select from carillon.workers
        where workers.id = ${p.workerId} and workers.lease_expires_at > ${nowOf(p.now)}
      )
    ), taken as (
      update carillon.runs
      set state = 'running',
        attempt_count = runs.attempt_count + 1,
        token = runs.token + 1,
        worker_id = ${p.workerId},
        started_at = (select at from stamp),
        due_at = null,
        waits_for = null,
        lane = null
      from due
      -- By the index of open runs. That of waiting ones begins with the lane: without it, all that is due would be walked through.
      where runs.schedule_id = any(array(select schedule_id from due))
        and ${isOpen()}
        and runs.schedule_id = due.schedule_id
        and runs.scheduled_for = due.scheduled_for
        and runs.token = due.token
        and runs.due_at is not distinct from due.due_at
      returning due.ordinal, due.due_at, runs.id, runs.schedule_id, runs.scheduled_for, runs.tenant_id, runs.project_id,
        runs.revision, runs.trigger, runs.attempt_count, runs.token, runs.started_at, due.owner_subject, due.present_kind
    )
    select taken.ordinal::integer as ordinal, taken.due_at, taken.id, taken.schedule_id, taken.scheduled_for, taken.tenant_id,
      taken.project_id, coalesce(revisions.target_kind, taken.present_kind) as target_kind, taken.trigger,
      taken.attempt_count, taken.token, taken.started_at, revisions.target, revisions.policy::text as policy,
      revisions.grant_id, grants.xmin as grant_version, grants.subject as grant_subject, grants.billing_account_id,
      grants.scopes, grants.schedule_id as grant_schedule_id, taken.owner_subject
    from taken
    -- Somebody may have taken its revision away. It is taken all the same, to fail and say so.
    left join carillon.schedule_revisions as revisions
      on revisions.schedule_id = taken.schedule_id and revisions.revision = taken.revision
    left join carillon.execution_grants as grants
      on grants.id = revisions.grant_id and grants.tenant_id = taken.tenant_id and grants.project_id = taken.project_id
    order by taken.ordinal, taken.due_at, taken.schedule_id, taken.scheduled_for`.execute(db)
  const last = new Map<string, LanePlace>()
  for (const { ordinal, due_at, schedule_id, scheduled_for } of rows) {
    const lane = p.lanes[ordinal - 1]?.lane
    if (lane === undefined) continue
    last.set(lane, { dueAt: due_at.getTime(), scheduleId: schedule_id, slot: scheduled_for.getTime() })
  }
  return { runs: rows.map((row) => toTaken(row, p.workerId)), last }
}

function toTaken(row: Row, workerId: string): TakenRun {
  return {
    runId: row.id,
    scheduleId: row.schedule_id,
    scheduledFor: row.scheduled_for.getTime(),
    tenantId: row.tenant_id,
    projectId: row.project_id,
    targetKind: row.target_kind,
    trigger: row.trigger,
    attempt: row.attempt_count,
    token: row.token,
    workerId,
    startedAt: row.started_at.getTime(),
    target: row.target,
    policy: row.policy ?? '',
    grant: {
      id: row.grant_id ?? NO_GRANT,
      version: row.grant_version ?? '0',
      // Without a grant there is nobody: its scopes are none, and the attempt is refused.
      subject: row.grant_subject ?? '',
      billingAccountId: row.billing_account_id,
      scopes: row.scopes ?? [],
      scheduleId: row.grant_schedule_id,
    },
    ownerSubject: row.owner_subject,
  }
}

const NO_GRANT = '00000000-0000-0000-0000-000000000000'
