import { sql } from 'kysely'

import type { Tx } from './database.ts'
import { nowOf } from './now.ts'

/** What a grant said when its run began. */
export interface GrantTerms {
  readonly id: string
  /** Which transaction wrote what was read: another one, if it was changed since. */
  readonly version: string
  readonly subject: string
  readonly billingAccountId: string | null
  readonly scopes: readonly string[]
  /** The one schedule that may act by it; null: any of its project. */
  readonly scheduleId: string | null
}

/** A run under a worker's lease, with the fence under which it was taken (I12): what is needed to settle it. */
export interface HeldRun {
  readonly runId: string
  readonly scheduleId: string
  readonly scheduledFor: number
  readonly workerId: string
  readonly token: number
  readonly attempt: number
}

/** The same with what its target needs: from the revision that began it (I5). */
export interface TakenRun extends HeldRun {
  readonly tenantId: string
  readonly projectId: string
  readonly targetKind: string
  readonly trigger: 'schedule' | 'manual'
  readonly startedAt: number
  readonly target: unknown
  /** JSON text. */
  readonly policy: string
  /** By what right, as the revision that began it says. */
  readonly grant: GrantTerms
  readonly ownerSubject: string
}

interface Row {
  id: string
  schedule_id: string
  scheduled_for: Date
  tenant_id: string
  project_id: string
  target_kind: string
  trigger: 'schedule' | 'manual'
  attempt_count: number
  token: number
  worker_id: string
  started_at: Date
  target: unknown
  policy: string
  grant_id: string
  grant_version: string | null
  grant_subject: string | null
  billing_account_id: string | null
  scopes: string[] | null
  grant_schedule_id: string | null
  owner_subject: string
}

/**
 * Takes a waiting run for its next attempt: the lease and a new fence (I12). Nothing comes back if it waits no longer, or
 * not long enough, or if this worker's own lease is gone. Call with the schedule's row locked.
 */
export async function takeRun(
  tx: Tx,
  p: { scheduleId: string; scheduledFor: number; workerId: string; now: Date | null },
): Promise<TakenRun | undefined> {
  const { rows } = await sql<Row>`
    with taken as (
      update carillon.runs
      set state = 'running',
        attempt_count = runs.attempt_count + 1,
        token = runs.token + 1,
        worker_id = ${p.workerId},
        started_at = ${nowOf(p.now)},
        retry_at = null
      where runs.schedule_id = ${p.scheduleId}
        and runs.scheduled_for = ${new Date(p.scheduledFor)}
        and (runs.state = 'pending' or (runs.state = 'retrying' and runs.retry_at <= ${nowOf(p.now)}))
        and exists (
          select from carillon.workers
          where workers.id = ${p.workerId} and workers.lease_expires_at > ${nowOf(p.now)}
        )
      returning runs.*
    )
    select taken.id, taken.schedule_id, taken.scheduled_for, taken.tenant_id, taken.project_id, revisions.target_kind,
      taken.trigger, taken.attempt_count, taken.token, taken.worker_id, taken.started_at, revisions.target, revisions.policy::text as policy,
      revisions.grant_id, grants.xmin as grant_version, grants.subject as grant_subject, grants.billing_account_id, grants.scopes,
      grants.schedule_id as grant_schedule_id, schedules.owner_subject
    from taken
    join carillon.schedule_revisions as revisions
      on revisions.schedule_id = taken.schedule_id and revisions.revision = taken.revision
    join carillon.schedules on schedules.id = taken.schedule_id
    left join carillon.execution_grants as grants
      on grants.id = revisions.grant_id and grants.tenant_id = taken.tenant_id and grants.project_id = taken.project_id`.execute(
    tx,
  )
  const [row] = rows
  return row && toTaken(row)
}

function toTaken(row: Row): TakenRun {
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
    workerId: row.worker_id,
    startedAt: row.started_at.getTime(),
    target: row.target,
    policy: row.policy,
    grant: {
      id: row.grant_id,
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
