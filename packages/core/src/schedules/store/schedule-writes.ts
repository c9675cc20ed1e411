import type { CadenceSpec } from '@carillon/cadence'

import type { NextDue } from '../../cadences/cadence-cache.ts'
import type { Tx } from '../../db/database.ts'
import { AGENDA_CHANNEL, NOTIFY_WITHIN_MS } from '../../db/notify.ts'
import { nowOf } from '../../db/now.ts'
import { instantText } from '../../db/parameters.ts'
import { sql, type Sql } from '../../db/sql.ts'
import type { EndedRun } from '../../ledger/open-runs.ts'
import type { SchedulePolicy } from '../../policy/schedule-policy.ts'

/* `p.now` is null in production: Postgres' clock decides. Tests pass an instant. */

/** The content of a revision. */
export interface RevisionContent {
  readonly name: string
  readonly cadence: CadenceSpec
  readonly target: { readonly kind: string }
  readonly policy: SchedulePolicy
  readonly grant: GrantChoice
  /** The scope that its grant must cover. */
  readonly requiredScope: string
}

/** The grant of a schedule: an existing one, or a new one for this schedule alone. */
export interface GrantChoice {
  readonly id: string
  /** The content of the new grant; null if `id` names an existing one. */
  readonly own: { readonly scopes: readonly string[]; readonly expiresAt: number | null } | null
}

/** Appends a revision and points the locked schedule at it. */
export async function reviseSchedule(
  tx: Tx,
  p: RevisionContent & NextDue & { id: string; state: string; actor: string; now: Date | null },
): Promise<void> {
  await sql`
    with schedule as (
      update schedules
      set revision = schedules.revision + 1,
        state = ${p.state}::schedule_state,
        target_kind = ${p.target.kind},
        grant_id = ${p.grant.id}::uuid,
        next_slot_at = ${instant(p.nextSlotAt)},
        due_at = ${instant(p.dueAt)},
        auto_pause_threshold = ${p.policy.autoPauseThreshold},
        updated_by_subject = ${p.actor},
        updated_at = ${nowOf(p.now)}
      where schedules.id = ${p.id}
      returning schedules.*
    ), ${ownGrant(p)} revision as (
      ${revisionInsert(p)}
    )
    ${notifySoonDue(p)}`.execute(tx)
}

/** Pauses a locked schedule: no slot of it comes due until it is resumed. */
export async function pauseSchedule(
  tx: Tx,
  p: { id: string; actor: string; reason: string; now: Date | null },
): Promise<void> {
  await sql`
    update schedules
    set state = 'paused', next_slot_at = null, due_at = null,
      paused_by_subject = ${p.actor}, paused_reason = ${p.reason}, paused_at = ${nowOf(p.now)}
    where schedules.id = ${p.id}`.execute(tx)
}

/** Resumes a locked schedule, or completes it if no slot is left. Resets its count of consecutive failures. */
export async function resumeSchedule(
  tx: Tx,
  p: NextDue & { id: string; actor: string; now: Date | null },
): Promise<void> {
  await sql`
    with schedule as (
      update schedules
      set state = ${p.nextSlotAt === null ? 'completed' : 'active'}::schedule_state,
        next_slot_at = ${instant(p.nextSlotAt)},
        due_at = ${instant(p.dueAt)},
        consecutive_failures = 0,
        resumed_by_subject = ${p.actor},
        resumed_at = ${nowOf(p.now)},
        paused_by_subject = null, paused_reason = null, paused_at = null
      where schedules.id = ${p.id}
      returning schedules.due_at, schedules.lane
    )
    ${notifySoonDue(p)}`.execute(tx)
}

/** Completes a locked schedule that is active or paused: it has no further slot. */
export async function completeSchedule(tx: Tx, p: { id: string }): Promise<void> {
  await sql`
    update schedules
    set state = 'completed', next_slot_at = null, due_at = null,
      paused_by_subject = null, paused_reason = null, paused_at = null
    where schedules.id = ${p.id}`.execute(tx)
}

/** Marks locked schedules as deleted. Their rows stay until the retention ends. */
export async function deleteSchedules(
  tx: Tx,
  p: { ids: readonly string[]; actor: string; now: Date | null },
): Promise<void> {
  await sql`
    update schedules
    set state = 'deleted', next_slot_at = null, due_at = null,
      deleted_by_subject = ${p.actor}, deleted_at = ${nowOf(p.now)}
    where schedules.id = any(${p.ids}::uuid[])`.execute(tx)
}

/**
 * Counts a manual run in its schedule's row, and the waiting runs that it supersedes: the `failed` ones had been tried and become
 * failures, the `untried` ones never started and no longer count as runs. Call with the schedule's row locked.
 */
export async function countManualRun(tx: Tx, p: { id: string; failed: number; untried: number }): Promise<void> {
  await sql`
    update schedules
    set run_count = schedules.run_count + 1 - ${p.untried}::integer,
      failure_count = schedules.failure_count + ${p.failed}::integer,
      consecutive_failures = schedules.consecutive_failures + ${p.failed}::integer
    where schedules.id = ${p.id}`.execute(tx)
}

/** Subtracts ended runs that were never tried from the run counts of their locked schedules. */
export async function uncountUntried(tx: Tx, p: { ended: readonly EndedRun[] }): Promise<void> {
  const scheduleIds = p.ended.filter(({ isTried }) => !isTried).map(({ scheduleId }) => scheduleId)
  if (scheduleIds.length === 0) return
  await sql`
    update schedules
    set run_count = schedules.run_count - untried.runs
    from (select id, count(*) as runs from unnest(${scheduleIds}::uuid[]) as ended(id) group by id) as untried
    where schedules.id = untried.id`.execute(tx)
}

/** Sets which slots of a locked schedule will be skipped. */
export async function setExcludedSlots(tx: Tx, p: { id: string; slots: readonly number[] }): Promise<void> {
  const slots = p.slots.length === 0 ? null : p.slots.map((slot) => instantText(slot))
  await sql`
    update schedules
    set excluded_slots = ${slots}::timestamptz[]
    where schedules.id = ${p.id}`.execute(tx)
}

function revisionInsert(p: RevisionContent & { actor: string; now: Date | null }): Sql<never> {
  const { kind } = p.cadence
  const payload = (of: CadenceSpec['kind']): Sql<never> => sql`${kind === of ? JSON.stringify(p.cadence) : null}::json`
  return sql`
      insert into schedule_revisions (
        schedule_id, revision, tenant_id, project_id, name, cadence_kind, cadence_once, cadence_cron, cadence_rrule,
        cadence_interval, cadence_frequency, target_kind, target, policy, grant_id, required_scope, changed_by_subject,
        changed_at
      )
      select id, revision, tenant_id, project_id, ${p.name}, ${kind}::cadence_kind, ${payload('once')},
        ${payload('cron')}, ${payload('rrule')}, ${payload('interval')}, ${payload('frequency')}, ${p.target.kind},
        ${JSON.stringify(p.target)}::json, ${JSON.stringify(p.policy)}::json, ${p.grant.id}::uuid, ${p.requiredScope},
        ${p.actor}, ${nowOf(p.now)}
      from schedule`
}

/**
 * Inserts a grant of the schedule's own. It is part of the statement that revises the schedule, because Postgres checks the foreign keys
 * between grant and schedule at the end of a statement.
 */
function ownGrant({
  grant,
  actor,
  now,
}: Pick<RevisionContent, 'grant'> & { actor: string; now: Date | null }): Sql<never> {
  if (grant.own === null) return sql``
  return sql`own_grant as (
      insert into execution_grants (
        id, tenant_id, project_id, subject, scopes, expires_at, created_by_subject, created_at, schedule_id
      )
      select ${grant.id}::uuid, tenant_id, project_id, owner_subject, ${grant.own.scopes}::text[],
        ${instant(grant.own.expiresAt)}, ${actor}, ${nowOf(now)}, id
      from schedule
    ),`
}

/** Ends a statement whose common table expression `schedule` was changed: workers are notified only if it is due before they look again. */
function notifySoonDue({ now }: { readonly now: Date | null }): Sql<never> {
  return sql`
    select pg_notify(${AGENDA_CHANNEL}, lane)
    from schedule
    where due_at < ${nowOf(now)} + ${NOTIFY_WITHIN_MS} * interval '1 millisecond'`
}

function instant(at: number | null): Sql<never> {
  return sql`${instantText(at)}::timestamptz`
}
