import type { CadenceSpec } from '@carillon/cadence'

import { snakeCase } from '../../db/columns.ts'
import type { Tx } from '../../db/database.ts'
import { AGENDA_CHANNEL, NOTIFY_WITHIN_MS } from '../../db/notify.ts'
import { instantText, plainArray, quotedArray } from '../../db/parameters.ts'
import type { Scope } from '../../kernel/scope.ts'

/** The TypeScript type of the values of each Postgres type. JSON is text; instants are epoch milliseconds. */
interface ValueOf {
  uuid: string
  text: string
  json: string
  boolean: boolean
  smallint: number
  timestamptz: number
  cadence_kind: CadenceSpec['kind']
}

type ColumnType = keyof ValueOf
type Table = 'schedules' | 'revisions'

/**
 * The values that differ from one new schedule to the next. To add a column, add a line here. `tables` lists the tables that have a
 * column of this name. The statements below write out every other use of a value.
 */
const COLUMNS = {
  id: { type: 'uuid', tables: ['schedules'] },
  ownerSubject: { type: 'text', tables: ['schedules'] },
  targetKind: { type: 'text', tables: ['schedules', 'revisions'] },
  grantId: { type: 'uuid', tables: ['schedules', 'revisions'] },
  /** True if this statement also creates the grant, for this schedule alone. */
  isGrantOwn: { type: 'boolean', tables: [] },
  nextSlotAt: { type: 'timestamptz', tables: ['schedules'] },
  dueAt: { type: 'timestamptz', tables: ['schedules'] },
  autoPauseThreshold: { type: 'smallint', tables: ['schedules'] },
  name: { type: 'text', tables: ['revisions'] },
  cadenceKind: { type: 'cadence_kind', tables: ['revisions'] },
  /** Type `json`, not `jsonb`, so that Postgres keeps the order of the fields. The same holds for target and policy. */
  cadence: { type: 'json', tables: [] },
  target: { type: 'json', tables: ['revisions'] },
  policy: { type: 'json', tables: ['revisions'] },
  /** The scope that the schedule's grant must cover, and the only scope of a grant that is created for this schedule alone. */
  requiredScope: { type: 'text', tables: ['revisions'] },
} as const satisfies Readonly<Record<string, { readonly type: ColumnType; readonly tables: readonly Table[] }>>

type Field = keyof typeof COLUMNS

/** A schedule to insert. */
export type NewSchedule = { readonly [Name in Field]: ValueOf[(typeof COLUMNS)[Name]['type']] }

const FIELDS = Object.keys(COLUMNS) as readonly Field[]
const parameter = (ordinal: number): string => `$${FIELDS.length + ordinal}`
const [TENANT, PROJECT, ACTOR] = [parameter(1), parameter(2), parameter(3)]
const CHANNEL = AGENDA_CHANNEL.compile().text
const NOW = `coalesce(${parameter(4)}::timestamptz, now())`
const NOTIFY_BEFORE = `${NOW} + ${parameter(5)} * interval '1 millisecond'`

/**
 * The text of the statement. It is built once, because building it takes as long as all other work of a create in this process.
 * Postgres checks the foreign keys between the tables at the end of the statement.
 */
function insertText(valueOf: (field: Field) => string, from: string): string {
  const namesIn = (table: Table): string => fieldsIn(table).map(snakeCase).join(', ')
  const valuesIn = (table: Table): string => fieldsIn(table).map(valueOf).join(', ')
  const cadenceOf = (kind: CadenceSpec['kind']): string =>
    `case ${valueOf('cadenceKind')} when '${kind}' then ${valueOf('cadence')} end`
  return `
    schedule as (
      insert into schedules (
        ${namesIn('schedules')}, tenant_id, project_id, state, revision, created_by_subject, created_at
      )
      select ${valuesIn('schedules')}, ${TENANT}, ${PROJECT}, 'active', 1, ${ACTOR}, ${NOW}
      ${from}
    ), own_grant as (
      insert into execution_grants (
        id, tenant_id, project_id, subject, scopes, created_by_subject, created_at, schedule_id
      )
      select ${valueOf('grantId')}, ${TENANT}, ${PROJECT}, ${valueOf('ownerSubject')}, array[${valueOf('requiredScope')}],
        ${ACTOR}, ${NOW}, ${valueOf('id')}
      ${from}
      where ${valueOf('isGrantOwn')}
    ), revision as (
      insert into schedule_revisions (
        ${namesIn('revisions')}, schedule_id, revision, tenant_id, project_id, cadence_once, cadence_cron, cadence_rrule,
        cadence_interval, cadence_frequency, changed_by_subject, changed_at
      )
      select ${valuesIn('revisions')}, ${valueOf('id')}, 1, ${TENANT}, ${PROJECT}, ${cadenceOf('once')},
        ${cadenceOf('cron')}, ${cadenceOf('rrule')}, ${cadenceOf('interval')}, ${cadenceOf('frequency')}, ${ACTOR}, ${NOW}
      ${from}
    ), change as (
      insert into schedule_changes (
        schedule_id, tenant_id, project_id, change, revision, next_slot_at, actor_subject, reason, changed_at
      )
      select ${valueOf('id')}, ${TENANT}, ${PROJECT}, 'created', 1, ${valueOf('nextSlotAt')}, ${ACTOR}, null, ${NOW}
      ${from}
    )
    select pg_notify(${CHANNEL}, '')
    where exists (select ${from} where ${valueOf('dueAt')} < ${NOTIFY_BEFORE})`
}

const PARAMETERS = new Map(FIELDS.map((field, index) => [field, `$${index + 1}::${COLUMNS[field].type}`]))

/** For a single schedule: it selects from no table, which takes Postgres a tenth less time. */
const INSERT_ONE = `with ${insertText((field) => PARAMETERS.get(field) ?? '', '')}`

const INSERT_MANY = `
  with given as (
    select *
    from unnest(${FIELDS.map((field) => `${PARAMETERS.get(field)}[]`).join(', ')})
      as given (${FIELDS.map(snakeCase).join(', ')})
  ), ${insertText((field) => `given.${snakeCase(field)}`, 'from given')}`

/**
 * Inserts schedules in one statement, each with its first revision, the first entry of its history and, if it names no grant, a grant
 * of its own. NOTIFY serialises commits, so workers are notified only if a schedule comes due before they would look again.
 * @param p.now an instant that a test sets; null: Postgres' clock
 */
export async function insertSchedules(
  tx: Tx,
  p: Scope & { schedules: readonly NewSchedule[]; actor: string; now: Date | null },
): Promise<void> {
  const [first] = p.schedules
  if (first === undefined) return
  const isOne = p.schedules.length === 1
  const values = FIELDS.map((field) => (isOne ? valueIn(first, field) : arrayOf(p.schedules, field)))
  const shared = [p.tenantId, p.projectId, p.actor, p.now, NOTIFY_WITHIN_MS]
  await tx.run({ text: isOne ? INSERT_ONE : INSERT_MANY, parameters: [...values, ...shared] })
}

function fieldsIn(table: Table): Field[] {
  return FIELDS.filter((field) => COLUMNS[field].tables.some((name) => name === table))
}

function valueIn(schedule: NewSchedule, field: Field): string {
  const value = schedule[field]
  return COLUMNS[field].type === 'timestamptz' ? instantText(Number(value)) : String(value)
}

function arrayOf(schedules: readonly NewSchedule[], field: Field): string {
  const values = schedules.map((schedule) => valueIn(schedule, field))
  const { type } = COLUMNS[field]
  return type === 'text' ? quotedArray(values) : type === 'json' ? jsonArray(values) : plainArray(values)
}

/**
 * An array of JSON texts. JSON text has no control characters, so writing it as JSON once more escapes exactly what an array of
 * Postgres needs escaped. It takes a third of the time of the driver's own escaping.
 */
function jsonArray(texts: readonly string[]): string {
  return `{${JSON.stringify(texts).slice(1, -1)}}`
}
