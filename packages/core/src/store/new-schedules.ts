import type { CadenceSpec } from '@carillon/cadence'
import { CompiledQuery } from 'kysely'

import { plainArray, quotedArray } from './array-text.ts'
import type { Tx } from './database.ts'
import { AGENDA_CHANNEL, NOTIFY_WITHIN_MS } from './notifications.ts'
import type { Place } from './walled-transaction.ts'

/** A schedule that is to be written. Instants are epoch milliseconds. */
export interface NewSchedule {
  readonly id: string
  readonly ownerSubject: string
  readonly name: string
  readonly cadenceKind: CadenceSpec['kind']
  /** As JSON, all three: what is written is what is sent, in the same order. */
  readonly cadence: string
  readonly targetKind: string
  readonly target: string
  readonly policy: string
  readonly autoPauseThreshold: number
  readonly grantId: string
  /** Whether the grant is made with it, and for it alone. */
  readonly isGrantOwn: boolean
  /** What its grant must carry; all that one of its own does. */
  readonly requiredScope: string
  readonly nextSlotAt: number
  readonly dueAt: number
}

/** What is told of each schedule, and as what. */
const COLUMNS = {
  id: 'uuid',
  owner_subject: 'text',
  target_kind: 'text',
  grant_id: 'uuid',
  is_grant_own: 'boolean',
  next_slot_at: 'timestamptz',
  due_at: 'timestamptz',
  auto_pause_threshold: 'smallint',
  name: 'text',
  cadence_kind: 'carillon.cadence_kind',
  cadence: 'json',
  target: 'json',
  policy: 'json',
  required_scope: 'text',
} as const

type Column = keyof typeof COLUMNS

const NAMES = Object.keys(COLUMNS) as readonly Column[]
const common = (ordinal: number): string => `$${NAMES.length + ordinal}`
const [TENANT, PROJECT, ACTOR, CHANNEL] = [common(1), common(2), common(3), common(5)]
const NOW = `coalesce(${common(4)}::timestamptz, now())`
const NOTIFY_BEFORE = `${NOW} + ${common(6)} * interval '1 millisecond'`

/**
 * The texts are made once: to put one together anew took as long as all the rest that a create does in this process.
 * Keys between the tables are checked at the end of the statement. The cadence goes into the column of its kind.
 */
function insertText(of: (column: Column) => string, from: string): string {
  const cadence = (kind: CadenceSpec['kind']): string =>
    `case ${of('cadence_kind')} when '${kind}' then ${of('cadence')} end`
  return `
    schedule as (
      insert into carillon.schedules (
        id, tenant_id, project_id, owner_subject, target_kind, state, revision, grant_id, next_slot_at, due_at,
        auto_pause_threshold, created_by_subject, created_at
      )
      select ${of('id')}, ${TENANT}, ${PROJECT}, ${of('owner_subject')}, ${of('target_kind')}, 'active', 1,
        ${of('grant_id')}, ${of('next_slot_at')}, ${of('due_at')}, ${of('auto_pause_threshold')}, ${ACTOR}, ${NOW}
      ${from}
    ), own_grant as (
      insert into carillon.execution_grants (
        id, tenant_id, project_id, subject, scopes, created_by_subject, created_at, schedule_id
      )
      select ${of('grant_id')}, ${TENANT}, ${PROJECT}, ${of('owner_subject')}, array[${of('required_scope')}], ${ACTOR},
        ${NOW}, ${of('id')}
      ${from}
      where ${of('is_grant_own')}
    ), revision as (
      insert into carillon.schedule_revisions (
        schedule_id, revision, tenant_id, project_id, name, cadence_kind, cadence_once, cadence_cron, cadence_rrule,
        cadence_interval, cadence_frequency, target_kind, target, policy, grant_id, required_scope, changed_by_subject,
        changed_at
      )
      select ${of('id')}, 1, ${TENANT}, ${PROJECT}, ${of('name')}, ${of('cadence_kind')}, ${cadence('once')},
        ${cadence('cron')}, ${cadence('rrule')}, ${cadence('interval')}, ${cadence('frequency')}, ${of('target_kind')},
        ${of('target')}, ${of('policy')}, ${of('grant_id')}, ${of('required_scope')}, ${ACTOR}, ${NOW}
      ${from}
    ), change as (
      insert into carillon.schedule_changes (
        schedule_id, tenant_id, project_id, change, revision, next_slot_at, actor_subject, reason, changed_at
      )
      select ${of('id')}, ${TENANT}, ${PROJECT}, 'created', 1, ${of('next_slot_at')}, ${ACTOR}, null, ${NOW}
      ${from}
    )
    select pg_notify(${CHANNEL}, '')
    where exists (select ${from} where ${of('due_at')} < ${NOTIFY_BEFORE})`
}

const PARAMETERS = new Map(NAMES.map((name, index) => [name, `$${index + 1}::${COLUMNS[name]}`]))

/** Without a table to read from: that takes a tenth less. */
const INSERT_ONE = `with ${insertText((column) => PARAMETERS.get(column) ?? '', '')}`

const INSERT_MANY = `
  with given as (
    select *
    from unnest(${NAMES.map((name) => `${PARAMETERS.get(name)}[]`).join(', ')}) as given (${NAMES.join(', ')})
  ), ${insertText((column) => `given.${column}`, 'from given')}`

/**
 * Writes schedules, each with its first revision, its history and, unless it was given one, its grant, in one statement: all
 * are there whole or none is. No queue is involved; the keepers are told only of what comes due before they would look again,
 * for NOTIFY serialises commits.
 */
export async function insertSchedules(
  tx: Tx,
  p: Place & { schedules: readonly NewSchedule[]; actor: string; now: Date | null },
): Promise<void> {
  const [first] = p.schedules
  if (first === undefined) return
  const isOne = p.schedules.length === 1
  const values = isOne ? valuesOfOne(first) : valuesOfMany(p.schedules)
  const commonValues = [p.tenantId, p.projectId, p.actor, p.now, AGENDA_CHANNEL, NOTIFY_WITHIN_MS]
  await tx.executeQuery(CompiledQuery.raw(isOne ? INSERT_ONE : INSERT_MANY, [...values, ...commonValues]))
}

/** In the order of the columns. */
function valuesOfOne(schedule: NewSchedule): unknown[] {
  return [
    schedule.id,
    schedule.ownerSubject,
    schedule.targetKind,
    schedule.grantId,
    schedule.isGrantOwn,
    instantText(schedule.nextSlotAt),
    instantText(schedule.dueAt),
    schedule.autoPauseThreshold,
    schedule.name,
    schedule.cadenceKind,
    schedule.cadence,
    schedule.target,
    schedule.policy,
    schedule.requiredScope,
  ]
}

function valuesOfMany(schedules: readonly NewSchedule[]): unknown[] {
  return [
    plainArray(schedules.map(({ id }) => id)),
    quotedArray(schedules.map(({ ownerSubject }) => ownerSubject)),
    quotedArray(schedules.map(({ targetKind }) => targetKind)),
    plainArray(schedules.map(({ grantId }) => grantId)),
    plainArray(schedules.map(({ isGrantOwn }) => String(isGrantOwn))),
    plainArray(schedules.map(({ nextSlotAt }) => instantText(nextSlotAt))),
    plainArray(schedules.map(({ dueAt }) => instantText(dueAt))),
    plainArray(schedules.map(({ autoPauseThreshold }) => autoPauseThreshold)),
    quotedArray(schedules.map(({ name }) => name)),
    plainArray(schedules.map(({ cadenceKind }) => cadenceKind)),
    jsonArray(schedules.map(({ cadence }) => cadence)),
    jsonArray(schedules.map(({ target }) => target)),
    jsonArray(schedules.map(({ policy }) => policy)),
    quotedArray(schedules.map(({ requiredScope }) => requiredScope)),
  ]
}

function instantText(at: number): string {
  return new Date(at).toISOString()
}

/**
 * An array of JSON texts. A text of JSON has no control characters of its own, so to write it as JSON once more escapes what
 * an array of Postgres wants escaped, and in the same way: in a third of the time that the driver takes.
 */
function jsonArray(texts: readonly string[]): string {
  return `{${JSON.stringify(texts).slice(1, -1)}}`
}
