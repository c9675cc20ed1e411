import { isDeepStrictEqual } from 'node:util'

import type { ScheduleState } from '@carillon/api'
import type { CadenceSpec } from '@carillon/cadence'

import { requireQuota } from '../access/quota.ts'
import { dueOf, nextDueAfter, noSlotAhead, NOT_DUE, type NextDue } from '../cadences/cadence-cache.ts'
import type { Tx } from '../db/database.ts'
import { notifyDue } from '../db/notify.ts'
import { insertChanges } from '../db/schedule-changes.ts'
import { type Caller, scopeOf } from '../kernel/scope.ts'
import { endTurnWait, requireLockedSettlement } from '../ledger/open-runs.ts'
import type { Schedule } from '../ledger/records.ts'
import { isUsedUp } from '../policy/schedule-policy.ts'
import { closeDueSlots, requireRevision, withLocked, writeBacklogs } from './change.ts'
import { changeEvent, readRules, refuseUnknownGrant, type SchedulerContext } from './context.ts'
import { grantForEdit } from './grant-choice.ts'
import {
  checkEdit,
  requireSecrets,
  type CheckedInput,
  type InputRules,
  type ScheduleEdit,
  type ScheduleInput,
} from './input.ts'
import { get } from './reads.ts'
import { reviseSchedule, type GrantChoice } from './store/schedule-writes.ts'
import { checkInTargets } from './target-hooks.ts'

/** The content of a schedule after an edit, and when it comes due next. */
export interface EditDecision extends NextDue {
  readonly checked: CheckedInput
  readonly isNewCadence: boolean
  /** True if name, cadence, target and policy stay the same. The grant is compared separately. */
  readonly isUnchanged: boolean
  readonly state: Exclude<ScheduleState, 'deleted'>
}

/** An edit that was checked against the database. */
interface CheckedEdit {
  readonly decision: EditDecision
  readonly grant: GrantChoice
  /** True if the edit changes nothing, the grant included. */
  readonly isUnchanged: boolean
}

/**
 * Checks an edit, and chooses its grant. Writes nothing.
 * @throws CarillonError `invalid_input`, or `target_hook_failed`
 */
export async function checkedEdit(
  tx: Tx,
  caller: Caller,
  p: {
    readonly schedule: Schedule
    readonly edit: ScheduleEdit
    readonly rules: InputRules
    /** True for a preview: whatever the target writes is rolled back. */
    readonly isDryRun: boolean
  },
): Promise<CheckedEdit> {
  const { schedule, edit, rules, isDryRun } = p
  const decision = decideEdit(schedule, edit, rules, caller)
  await requireSecrets(tx, caller, decision.checked, rules)
  const grant = await grantForEdit(tx, {
    scope: scopeOf(caller),
    scheduleId: schedule.id,
    grantId: edit.grantId,
    currentId: schedule.grantId,
    requiredScope: decision.checked.requiredScope,
    now: rules.now,
  })
  const draft = { ...decision.checked, ownerSubject: schedule.ownerSubject, grantId: grant.id }
  await checkInTargets(tx, caller, [{ root: '', input: draft }], { rules, isDryRun })
  return { decision, grant, isUnchanged: decision.isUnchanged && grant.id === schedule.grantId }
}

/** An edit that changes nothing is checked like any other, but writes nothing: no revision, no history, no event. */
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
    const { decision, grant, isUnchanged } = await checkedEdit(tx, caller, {
      schedule,
      edit,
      rules: { ...rules, now },
      isDryRun: false,
    })
    if (isUnchanged) return { unchanged: schedule }
    const { checked, isNewCadence, state, nextSlotAt, dueAt } = decision
    const [actor, at] = [caller.subject, new Date(now)]
    const isEnded = schedule.state === 'active' && state === 'completed'
    const backlogs =
      isNewCadence || isEnded
        ? await closeDueSlots(tx, context, { schedules: [schedule], reason: 'superseded', now })
        : []
    await refuseUnknownGrant(
      reviseSchedule(tx, {
        ...checked,
        cadence: checked.cadence.rule.spec,
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
    if (schedule.state === 'completed' && state === 'active') await requireQuota(tx, schedule)
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
 * Open runs began under the old overlap policy, and the workers that hold them know only that policy. From now on these runs are settled
 * under the schedule's lock. Otherwise the end of a run might not start the run that waits for it.
 * @param now an instant that a test sets; null: Postgres' clock
 */
async function changeOverlap(tx: Tx, { id }: Schedule, { policy }: CheckedInput, now: Date | null): Promise<void> {
  await requireLockedSettlement(tx, { scheduleId: id })
  if (policy.overlap !== 'allow') return
  await notifyDue(tx, { lanes: await endTurnWait(tx, { scheduleIds: [id], isAllowed: true, now }) })
}

/**
 * Decides what a schedule becomes by an edit, except for its grant. Writes nothing.
 * @throws CarillonError `invalid_input` with every field at fault
 */
function decideEdit(schedule: Schedule, edit: ScheduleEdit, rules: InputRules, caller: Caller): EditDecision {
  const { now } = rules
  const checked = checkEdit(edit, contentOf(schedule), rules, { ...caller, subject: schedule.ownerSubject })
  const isNewCadence = edit.cadence !== undefined && !isSameCadence(checked.cadence.rule.spec, schedule.cadence)
  const isPaused = schedule.state === 'paused'
  const { id, runCount } = schedule
  const { spreadSeconds } = checked.policy
  const hasNoRunsLeft = isUsedUp(checked.policy, runCount)
  // A raised limit gives a schedule that has used up its runs a next slot again.
  const isReopened = schedule.state === 'completed' && isUsedUp(schedule.policy, runCount) && !hasNoRunsLeft
  const isRecomputed = (isNewCadence || isReopened) && !isPaused
  const next = hasNoRunsLeft
    ? NOT_DUE
    : isRecomputed
      ? nextDueAfter(checked.cadence, now, { id, spreadSeconds })
      : dueOf(schedule.nextSlotAt, { id, spreadSeconds })
  if (isNewCadence && isRecomputed && !hasNoRunsLeft && next.nextSlotAt === null) throw noSlotAhead()
  const state = isPaused ? 'paused' : next.nextSlotAt === null ? 'completed' : 'active'
  return { checked, isNewCadence, isUnchanged: isSameContent(checked, schedule), state, ...next }
}

function contentOf({ name, cadence, target, policy }: Schedule): ScheduleInput {
  return { name, cadence, target, policy }
}

function isSameContent({ name, cadence, target, policy }: CheckedInput, schedule: Schedule): boolean {
  return (
    name === schedule.name &&
    isSameCadence(cadence.rule.spec, schedule.cadence) &&
    comparableText(target) === comparableText(schedule.target) &&
    isDeepStrictEqual(policy, schedule.policy)
  )
}

/**
 * A target as JSON text with its top-level fields sorted, because different releases store these fields in different orders. Inside a
 * field the order matters: a payload is sent in the order in which it is stored.
 */
function comparableText(target: object): string {
  return JSON.stringify(Object.fromEntries(Object.entries(target).toSorted(([a], [b]) => (a < b ? -1 : 1))))
}

function isSameCadence(a: CadenceSpec, b: CadenceSpec): boolean {
  return JSON.stringify(a) === JSON.stringify(b)
}
