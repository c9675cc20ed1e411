import type { CadenceSpec } from '@carillon/cadence'

import type { Caller } from '../caller.ts'
import { identifiersAt } from '../identifier.ts'
import { placeOf } from '../place.ts'
import type { SchedulePolicy } from '../policy/schedule-policy.ts'
import type { Schedule } from '../schedule.ts'
import type { Tx } from '../store/database.ts'
import { insertSchedules, type NewSchedule } from '../store/new-schedules.ts'
import { isConnectionInDoubt } from '../store/sqlstate.ts'
import { checkSchedules, eachOf } from './checked-schedules.ts'
import { transactByRules } from './input-rules.ts'
import { nextDueAfter } from './next-due.ts'
import { noSlotAhead, refusingUnknownGrant } from './refusals.ts'
import type { InputContext, ScheduleInput } from './schedule-input.ts'
import { changeEvent, type SchedulerContext } from './scheduler-context.ts'

export async function create(context: SchedulerContext, caller: Caller, input: ScheduleInput): Promise<Schedule> {
  const schedule = await transactByRules(context, caller, (tx, rules) => insertInput(context, tx, caller, input, rules))
  context.events.emit('schedule.created', changeEvent(caller, schedule.id))
  return schedule
}

/**
 * Makes several as `create` does each, in one transaction: all of them or none.
 * @returns null if none was written, for whatever reason
 * @throws if nobody knows: the connection broke while it was committed
 */
export async function createTogether(
  context: SchedulerContext,
  caller: Caller,
  inputs: readonly ScheduleInput[],
): Promise<Schedule[] | null> {
  let isWritten = false
  try {
    const schedules = await transactByRules(context, caller, async (tx, rules) => {
      isWritten = false
      const made = await insertInputs(context, tx, caller, { inputs, rules, rootOf: () => '' })
      isWritten = true
      return made.map((schedule) => asRead(schedule, caller, rules.now))
    })
    for (const { id } of schedules) context.events.emit('schedule.created', changeEvent(caller, id))
    return schedules
  } catch (error) {
    if (isWritten && isConnectionInDoubt(error)) throw error
    return null
  }
}

/** Checks an input and writes its schedule. */
export async function insertInput(
  context: SchedulerContext,
  tx: Tx,
  caller: Caller,
  input: ScheduleInput,
  rules: InputContext,
): Promise<Schedule> {
  const [made] = await insertInputs(context, tx, caller, { inputs: [input], rules, rootOf: () => '' })
  if (made === undefined) throw new Error('an input made no schedule')
  return asRead(made, caller, rules.now)
}

interface MadeSchedule extends NewSchedule {
  readonly grantExpiresAt: number | null
}

/** Checks inputs and writes their schedules, all of them or none. */
export async function insertInputs(
  context: SchedulerContext,
  tx: Tx,
  caller: Caller,
  given: { inputs: readonly unknown[]; rules: InputContext; rootOf: (index: number) => string },
): Promise<MadeSchedule[]> {
  const { rules, rootOf } = given
  const { now } = rules
  const all = await checkSchedules(context, tx, caller, given)
  const ids = identifiersAt(now, all.length)
  const grantIds = identifiersAt(now, all.length)
  const schedules = eachOf(all, rootOf, ({ checked, grant }, index) => {
    const id = ids[index] ?? ''
    const next = nextDueAfter(checked.cadence, now, id, checked.policy.spreadSeconds)
    if (next.nextSlotAt === null || next.dueAt === null) throw noSlotAhead()
    return {
      id,
      ownerSubject: checked.ownerSubject ?? caller.subject,
      name: checked.name,
      cadenceKind: checked.cadence.kind,
      cadence: jsonOf(checked.cadence.spec),
      targetKind: checked.target.kind,
      target: JSON.stringify(checked.target),
      policy: jsonOf(checked.policy),
      autoPauseThreshold: checked.policy.autoPauseThreshold,
      requiredScope: checked.requiredScope,
      grantId: grant?.id ?? grantIds[index] ?? '',
      isGrantOwn: grant === null,
      grantExpiresAt: grant?.expiresAt ?? null,
      nextSlotAt: next.nextSlotAt,
      dueAt: next.dueAt,
    }
  })
  await refusingUnknownGrant(() =>
    insertSchedules(tx, { ...placeOf(caller), schedules, actor: caller.subject, now: context.clock.databaseNow() }),
  )
  return schedules
}

/** What reading it would give. Nobody can have changed it: it is not to be seen before the transaction ends. */
function asRead(made: MadeSchedule, { tenantId, projectId, subject }: Caller, now: number): Schedule {
  return {
    id: made.id,
    tenantId,
    projectId,
    ownerSubject: made.ownerSubject,
    name: made.name,
    state: 'active',
    revision: 1,
    // Read from what was written: what was undefined is not there, and it is nobody else's object.
    cadence: JSON.parse(made.cadence) as CadenceSpec,
    target: JSON.parse(made.target) as Schedule['target'],
    policy: JSON.parse(made.policy) as SchedulePolicy,
    grantId: made.grantId,
    grantExpiresAt: made.grantExpiresAt,
    isGrantRevoked: false,
    nextSlotAt: made.nextSlotAt,
    dueAt: made.dueAt,
    excludedSlots: [],
    runCount: 0,
    failureCount: 0,
    consecutiveFailures: 0,
    createdBy: subject,
    createdAt: now,
    updatedBy: null,
    updatedAt: null,
    pausedBy: null,
    pausedReason: null,
    pausedAt: null,
  }
}

const texts = new WeakMap<object, string>()

/** As JSON. Known ones are shared by many schedules (see KnownInputs), and are written but once. */
function jsonOf(value: CadenceSpec | SchedulePolicy): string {
  const known = texts.get(value)
  if (known !== undefined) return known
  const text = JSON.stringify(value)
  texts.set(value, text)
  return text
}
