import type { Caller } from '../caller.ts'
import { identifierAt } from '../identifier.ts'
import { placeOf } from '../place.ts'
import type { Schedule } from '../schedule.ts'
import type { Tx } from '../store/database.ts'
import { insertSchedule } from '../store/schedule-writes.ts'
import { readRules, requireOwner, requireSecrets } from './input-rules.ts'
import { nextDueAfter } from './next-due.ts'
import { noSlotAhead, refusingUnknownGrant } from './refusals.ts'
import { grantForNew } from './schedule-grant.ts'
import { checkInput, type ScheduleInput } from './schedule-input.ts'
import { getIn } from './schedule-reads.ts'
import { changeEvent, type SchedulerContext } from './scheduler-context.ts'

export async function create(context: SchedulerContext, caller: Caller, input: ScheduleInput): Promise<Schedule> {
  const schedule = await context.transact(caller, async (tx) =>
    getIn(tx, caller, await insertInput(context, tx, caller, input)),
  )
  context.events.emit('schedule.created', changeEvent(caller, schedule.id))
  return schedule
}

/**
 * Checks an input and writes its schedule.
 * @returns its id
 */
export async function insertInput(
  context: SchedulerContext,
  tx: Tx,
  caller: Caller,
  input: ScheduleInput,
): Promise<string> {
  const rules = await readRules(context, tx, caller)
  const { now } = rules
  const checked = checkInput(input, rules)
  await requireOwner(tx, caller, checked)
  await requireSecrets(context, tx, caller, checked)
  const id = identifierAt(now)
  const next = nextDueAfter(checked.cadence, now, id, checked.policy.spreadSeconds)
  if (next.nextSlotAt === null) throw noSlotAhead()
  const place = placeOf(caller)
  const { grantId, requiredScope: scope } = checked
  const grant = await grantForNew(tx, { place, scheduleId: id, grantId, scope, now })
  await refusingUnknownGrant(() =>
    insertSchedule(tx, {
      ...checked,
      ...next,
      ...place,
      cadence: checked.cadence.spec,
      id,
      grant,
      ownerSubject: checked.ownerSubject ?? caller.subject,
      actor: caller.subject,
      now: context.clock.databaseNow(),
    }),
  )
  return id
}
