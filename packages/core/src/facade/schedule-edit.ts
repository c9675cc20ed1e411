import { isDeepStrictEqual } from 'node:util'

import type { CadenceSpec } from '@carillon/cadence'

import type { Caller } from '../caller.ts'
import { placeOf } from '../place.ts'
import type { Schedule } from '../schedule.ts'
import type { Tx } from '../store/database.ts'
import { notifyDue } from '../store/notifications.ts'
import { insertChanges } from '../store/schedule-changes.ts'
import { requirePlace, reviseSchedule, type NextDue } from '../store/schedule-writes.ts'
import { freeWaitingRuns, settleLocked } from '../store/waiting-runs.ts'
import { closeDueSlots, writeBacklogs } from './due-slots.ts'
import { readRules, requireSecrets } from './input-rules.ts'
import { dueOf, nextDueAfter } from './next-due.ts'
import { noSlotAhead, refusingUnknownGrant } from './refusals.ts'
import { requireRevision, withLocked } from './schedule-change.ts'
import { grantForEdit } from './schedule-grant.ts'
import {
  checkEdit,
  type CheckedInput,
  type InputContext,
  type ScheduleEdit,
  type ScheduleInput,
} from './schedule-input.ts'
import { get } from './schedule-reads.ts'
import { changeEvent, type SchedulerContext } from './scheduler-context.ts'

/** What a schedule says and waits for after an edit. */
export interface EditDecision extends NextDue {
  readonly checked: CheckedInput
  readonly isNewCadence: boolean
  /** It says what it said before; whether it acts by the same grant is another matter. */
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
  const { unchanged, backlogs = [] } = await withLocked(context, caller, id, async (tx, schedule, now) => {
    requireRevision(schedule, revision)
    const rules = await readRules(context, tx, caller)
    const decision = decideEdit(schedule, edit, { ...rules, now })
    const { checked, isNewCadence, state, nextSlotAt, dueAt } = decision
    await requireSecrets(context, tx, caller, checked)
    const grant = await grantForEdit(tx, {
      place: placeOf(caller),
      scheduleId: id,
      grantId: edit.grantId,
      currentId: schedule.grantId,
      scope: checked.requiredScope,
      now,
    })
    if (decision.isUnchanged && grant.id === schedule.grantId) return { unchanged: schedule }
    const [actor, at] = [caller.subject, new Date(now)]
    const backlogs = isNewCadence
      ? await closeDueSlots(tx, context, { schedules: [schedule], reason: 'superseded', now })
      : []
    await refusingUnknownGrant(() =>
      reviseSchedule(tx, {
        ...checked,
        cadence: checked.cadence.spec,
        id,
        grant,
        state,
        nextSlotAt,
        dueAt,
        actor,
        now: at,
      }),
    )
    if (checked.policy.overlap !== schedule.policy.overlap) {
      await changeOverlap(tx, schedule, checked, context.clock.databaseNow())
    }
    if (schedule.state === 'completed' && state === 'active') await requirePlace(tx, schedule)
    await insertChanges(tx, { change: 'edited', reason: null, scheduleIds: [id], actor, now: at })
    return { backlogs }
  })
  if (unchanged !== undefined) return unchanged
  const edited = await get(context, caller, id)
  context.events.emit('schedule.edited', { ...changeEvent(caller, id), revision: edited.revision })
  await writeBacklogs(context, caller, backlogs)
  return edited
}

/**
 * Open runs began under another overlap policy, which is all that their workers know of: from now on they are settled under the
 * schedule's lock, or the next slot could wait for ever for an end that frees nobody.
 */
async function changeOverlap(tx: Tx, { id }: Schedule, { policy }: CheckedInput, now: Date | null): Promise<void> {
  await settleLocked(tx, { scheduleId: id })
  if (policy.overlap !== 'allow') return
  await notifyDue(tx, { lanes: await freeWaitingRuns(tx, { scheduleIds: [id], isAllowed: true, now }) })
}

/**
 * Decides what an edit makes of a schedule, its grant aside; writes nothing.
 * @throws CarillonError `invalid_input` with every field at fault
 */
export function decideEdit(schedule: Schedule, edit: ScheduleEdit, rules: InputContext): EditDecision {
  const { now } = rules
  const checked = checkEdit(edit, contentOf(schedule), rules)
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

function contentOf({ name, cadence, target, policy }: Schedule): ScheduleInput {
  return { name, cadence, target, policy }
}

/** Of the target the order of fields counts as well: it is the order in which a payload is sent. */
function isSameContent({ name, cadence, target, policy }: CheckedInput, schedule: Schedule): boolean {
  return (
    name === schedule.name &&
    isSameCadence(cadence.spec, schedule.cadence) &&
    JSON.stringify(target) === JSON.stringify(schedule.target) &&
    isDeepStrictEqual(policy, schedule.policy)
  )
}

function isSameCadence(a: CadenceSpec, b: CadenceSpec): boolean {
  return JSON.stringify(a) === JSON.stringify(b)
}
