import { isDeepStrictEqual } from 'node:util'

import type { CadenceSpec } from '@carillon/cadence'

import type { Caller } from '../caller.ts'
import type { Schedule } from '../schedule.ts'
import { insertChanges } from '../store/schedule-changes.ts'
import { reviseSchedule, type NextDue } from '../store/schedule-writes.ts'
import { closeDueSlots } from './due-slots.ts'
import { dueOf, nextDueAfter } from './next-due.ts'
import { noSlotAhead, refusingUnknownGrant } from './refusals.ts'
import { requireRevision, withLocked } from './schedule-change.ts'
import { checkEdit, type CheckedInput, type ScheduleEdit, type ScheduleInput } from './schedule-input.ts'
import { get } from './schedule-reads.ts'
import { changeEvent, type SchedulerContext } from './scheduler-context.ts'

/** What a schedule says and waits for after an edit. */
export interface EditDecision extends NextDue {
  readonly checked: CheckedInput
  readonly isNewCadence: boolean
  /** It says what it said before. */
  readonly isUnchanged: boolean
  readonly state: 'active' | 'paused' | 'completed'
}

/** An edit that changes nothing writes nothing: no revision, no line of history, no event. It is refused all the same. */
export async function edit(
  context: SchedulerContext,
  caller: Caller,
  id: string,
  edit: ScheduleEdit,
  { revision }: { readonly revision: number },
): Promise<Schedule> {
  const unchanged = await withLocked(context, caller, id, async (tx, schedule, now) => {
    requireRevision(schedule, revision)
    const { checked, isNewCadence, isUnchanged, state, nextSlotAt, dueAt } = decideEdit(context, schedule, edit, now)
    if (isUnchanged) return schedule
    const [actor, databaseNow] = [caller.subject, context.clock.databaseNow()]
    if (isNewCadence) await closeDueSlots(tx, context, { schedule, reason: 'superseded', now })
    await refusingUnknownGrant(() =>
      reviseSchedule(tx, {
        ...checked,
        cadence: checked.cadence.spec,
        id,
        state,
        nextSlotAt,
        dueAt,
        actor,
        now: databaseNow,
      }),
    )
    await insertChanges(tx, { change: 'edited', reason: null, scheduleIds: [id], actor, now: databaseNow })
    return undefined
  })
  if (unchanged !== undefined) return unchanged
  const edited = await get(context, caller, id)
  context.events.emit('schedule.edited', { ...changeEvent(caller, id), revision: edited.revision })
  return edited
}

/**
 * Decides what an edit makes of a schedule; writes nothing. Whether its grant exists is left to the database.
 * @throws CarillonError `invalid_input` with every field at fault
 */
export function decideEdit(
  { targets, minimumSeconds }: SchedulerContext,
  schedule: Schedule,
  edit: ScheduleEdit,
  now: number,
): EditDecision {
  const checked = checkEdit(edit, contentOf(schedule), { targets, minimumSeconds, now })
  const isNewCadence = edit.cadence !== undefined && !isSameCadence(checked.cadence.spec, schedule.cadence)
  const isPaused = schedule.state === 'paused'
  const { spreadSeconds } = checked.policy
  const next =
    isNewCadence && !isPaused
      ? nextDueAfter(checked.cadence, now, schedule.id, spreadSeconds)
      : dueOf(schedule.nextSlotAt, schedule.id, spreadSeconds)
  if (isNewCadence && !isPaused && next.nextSlotAt === null) throw noSlotAhead()
  const state = isPaused ? 'paused' : next.nextSlotAt === null ? 'completed' : 'active'
  return { checked, isNewCadence, isUnchanged: isSameContent(checked, schedule), state, ...next }
}

function contentOf({ name, cadence, target, policy, grantId }: Schedule): ScheduleInput {
  return { name, cadence, target, policy, grantId: grantId ?? undefined }
}

/** Of the target the order of fields counts as well: it is the order in which a payload is sent. */
function isSameContent({ name, cadence, target, policy, grantId }: CheckedInput, schedule: Schedule): boolean {
  return (
    name === schedule.name &&
    isSameCadence(cadence.spec, schedule.cadence) &&
    JSON.stringify(target) === JSON.stringify(schedule.target) &&
    isDeepStrictEqual(policy, schedule.policy) &&
    grantId === schedule.grantId
  )
}

function isSameCadence(a: CadenceSpec, b: CadenceSpec): boolean {
  return JSON.stringify(a) === JSON.stringify(b)
}
