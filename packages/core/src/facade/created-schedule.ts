import type { Caller } from '../caller.ts'
import { identifierAt } from '../identifier.ts'
import type { Schedule } from '../schedule.ts'
import type { Db, Tx } from '../store/database.ts'
import { readNow } from '../store/now.ts'
import { insertSchedule } from '../store/schedule-writes.ts'
import { nextDueAfter } from './next-due.ts'
import { noSlotAhead, refusingUnknownGrant } from './refusals.ts'
import { checkInput, type ScheduleInput } from './schedule-input.ts'
import { get } from './schedule-reads.ts'
import { changeEvent, type SchedulerContext } from './scheduler-context.ts'

export async function create(context: SchedulerContext, caller: Caller, input: ScheduleInput): Promise<Schedule> {
  const id = await insertInput(context, context.db, caller, input)
  context.events.emit('schedule.created', changeEvent(caller, id))
  return get(context, caller, id)
}

/**
 * Checks an input and writes its schedule, on any connection or in a transaction.
 * @returns its id
 */
export async function insertInput(
  { clock, targets, minimumSeconds }: SchedulerContext,
  db: Db | Tx,
  { tenantId, projectId, subject }: Caller,
  input: ScheduleInput,
): Promise<string> {
  const now = clock.databaseNow()
  const at = await readNow(db, now)
  const checked = checkInput(input, { targets, minimumSeconds, now: at })
  const id = identifierAt(at)
  const next = nextDueAfter(checked.cadence, at, id, checked.policy.spreadSeconds)
  if (next.nextSlotAt === null) throw noSlotAhead()
  await refusingUnknownGrant(() =>
    insertSchedule(db, {
      ...checked,
      ...next,
      cadence: checked.cadence.spec,
      id,
      tenantId,
      projectId,
      ownerSubject: checked.ownerSubject ?? subject,
      actor: subject,
      now,
    }),
  )
  return id
}
