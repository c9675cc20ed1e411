import { SearchLimitError, type Cadence, type CadenceSpec } from '@carillon/cadence'

import { noSlotAhead, readCadence, searchSlots } from '../cadences/cadence-cache.ts'
import { CarillonError } from '../kernel/errors.ts'
import type { Json } from '../kernel/json.ts'
import type { Caller } from '../kernel/scope.ts'
import type { Schedule } from '../ledger/records.ts'
import type { SchedulePolicy } from '../policy/schedule-policy.ts'
import { requireRevision } from './change.ts'
import { readRules, transactWithRules, type SchedulerContext } from './context.ts'
import { checkedList, rootInList } from './create.ts'
import { checkedEdit, type EditDecision } from './edit.ts'
import { checkInputs, mapInputs, ownedBy, type CheckedInput, type ScheduleEdit, type ScheduleInput } from './input.ts'
import { previewsOf, withPreview } from './kind-previews.ts'
import type { ChangeOptions, Preview, SlotPreview } from './options.ts'
import { getIn } from './reads.ts'

/** The schedule that a create would make, with every default filled in, and its next slots. */
export interface CreatePlan extends Preview {
  readonly name: string
  readonly cadence: CadenceSpec
  readonly target: Schedule['target']
  readonly policy: SchedulePolicy
  /** Null: the create would also create a grant for this schedule alone. */
  readonly grantId: string | null
  readonly ownerSubject: string
  /** What the kind of the target shows besides; undefined if it shows nothing. */
  readonly preview?: Json | undefined
}

/** What an edit would do. */
export interface EditPlan {
  /** The revision that the plan was made from. */
  readonly basedOn: number
  /** The edited schedule; the current one if the edit changes nothing. */
  readonly schedule: Schedule
  /** Slots that only the edited cadence has, the earliest first; at most 50. */
  readonly added: readonly SlotPreview[]
  /** Slots that only the current cadence has, the earliest first; at most 50. */
  readonly removed: readonly SlotPreview[]
  /** The instant up to which both cadences were compared, inclusive; null if both were compared to their ends, or if the cadence stays. */
  readonly comparedUntil: number | null
  /** What the kind of the target shows besides; undefined if it shows nothing. */
  readonly preview?: Json | undefined
}

/** The next slots of a cadence, as far as they were computed. */
interface Outlook {
  /** Null if this version cannot read the stored cadence. */
  readonly cadence: Cadence | null
  readonly slots: readonly number[]
  /** `slots` is complete up to this instant; Infinity if the cadence has no further slot. */
  readonly until: number
}

const SLOTS_SHOWN = 5
const COMPARED_MAX = 100
const REPORTED_MAX = 50
const NOTHING: Outlook = { cadence: null, slots: [], until: Infinity }

/** Throws what a create would throw, and writes nothing. */
export async function planCreate(context: SchedulerContext, caller: Caller, input: ScheduleInput): Promise<CreatePlan> {
  const [plan] = await planInputs(context, caller, [input], () => '')
  if (plan === undefined) throw new Error('expected a plan for the input, got none')
  return plan
}

/** `planCreate` for several inputs. One error names the problems of all of them. */
export async function planCreateMany(
  context: SchedulerContext,
  caller: Caller,
  inputs: readonly ScheduleInput[],
): Promise<CreatePlan[]> {
  return planInputs(context, caller, checkedList(inputs), rootInList)
}

async function planInputs(
  context: SchedulerContext,
  caller: Caller,
  inputs: readonly unknown[],
  rootOf: (index: number) => string,
): Promise<CreatePlan[]> {
  const { checked, now } = await transactWithRules(context, caller, async (tx, rules) => ({
    checked: await checkInputs(tx, caller, { inputs, rules, rootOf, isDryRun: true }),
    now: rules.now,
  }))
  const plans = mapInputs(checked, rootOf, (input) => planOf(input, caller, now))
  const asked = plans.map(({ slots }, index) => {
    const input = checked[index]
    return { input: input && ownedBy(caller, input), slots: () => slots }
  })
  const previews = await previewsOf(context, caller, asked)
  return plans.map((plan, index) => withPreview(plan, previews[index]))
}

function planOf(checked: CheckedInput, caller: Caller, now: number): CreatePlan {
  const { name, cadence, target, policy, grantId, ownerSubject } = checked
  return searchSlots('cadence', () => {
    if (cadence.next(now) === null) throw noSlotAhead()
    return {
      name,
      cadence: cadence.rule.spec,
      target: asStored(target),
      policy,
      grantId,
      ownerSubject: ownerSubject ?? caller.subject,
      description: cadence.rule.describe(),
      slots: shownSlots(cadence, now),
      warnings: cadence.rule.warnings(now),
    }
  })
}

/** The next slots that a preview shows. */
function shownSlots({ rule }: CheckedInput['cadence'], now: number): SlotPreview[] {
  return rule.slots(now + 1, { limit: SLOTS_SHOWN }).map((slot) => ({ scheduledFor: slot, local: rule.local(slot) }))
}

/** A target as a read would return it: without undefined fields. */
function asStored(target: CheckedInput['target']): Schedule['target'] {
  return JSON.parse(JSON.stringify(target)) as Schedule['target']
}

/** Takes no lock and writes nothing. The plan holds for the revision that it was made from. */
export async function planEdit(
  context: SchedulerContext,
  caller: Caller,
  id: string,
  edit: ScheduleEdit,
  { revision }: ChangeOptions,
): Promise<EditPlan> {
  const { schedule, decision, grant, isUnchanged, now } = await context.transact(caller, async (tx) => {
    const schedule = await getIn(tx, caller, id)
    requireRevision(schedule, revision)
    const rules = await readRules(context, tx, caller)
    return { schedule, now: rules.now, ...(await checkedEdit(tx, caller, { schedule, edit, rules, isDryRun: true })) }
  })
  const planned = isUnchanged ? schedule : plannedSchedule(schedule, decision, grant.id, { actor: caller.subject, now })
  const { checked } = decision
  const input = { ...checked, ownerSubject: schedule.ownerSubject, grantId: grant.id }
  const [preview] = await previewsOf(context, caller, [
    { input, slots: () => searchSlots('cadence', () => shownSlots(checked.cadence, now)) },
  ])
  const plan = withPreview({ basedOn: schedule.revision, schedule: planned }, preview)
  if (!decision.isNewCadence) return { ...plan, added: [], removed: [], comparedUntil: null }
  const old = outlookOf(readableCadence(schedule), firstAwaited(schedule, now))
  return { ...plan, ...compareOutlooks(old, outlookOf(decision.checked.cadence.rule, now + 1)) }
}

function plannedSchedule(
  schedule: Schedule,
  { checked, state, nextSlotAt, dueAt }: EditDecision,
  grantId: string,
  { actor, now }: { actor: string; now: number },
): Schedule {
  const { name, cadence, target, policy } = checked
  return {
    ...schedule,
    name,
    state,
    revision: schedule.revision + 1,
    cadence: cadence.rule.spec,
    target: asStored(target),
    policy,
    grantId,
    nextSlotAt,
    dueAt,
    updatedBy: actor,
    updatedAt: now,
  }
}

function compareOutlooks(old: Outlook, edited: Outlook): Pick<EditPlan, 'added' | 'removed' | 'comparedUntil'> {
  const until = Math.min(old.until, edited.until)
  return {
    added: onlyIn(edited, old, until),
    removed: onlyIn(old, edited, until),
    comparedUntil: until === Infinity ? null : until,
  }
}

function onlyIn({ cadence, slots }: Outlook, other: Outlook, until: number): SlotPreview[] {
  if (cadence === null) return []
  const others = new Set(other.slots)
  return slots
    .filter((slot) => slot <= until && !others.has(slot))
    .slice(0, REPORTED_MAX)
    .map((slot) => ({ scheduledFor: slot, local: cadence.local(slot) }))
}

function outlookOf(cadence: Cadence | null, from: number): Outlook {
  if (cadence === null) return NOTHING
  try {
    const slots = cadence.slots(from, { limit: COMPARED_MAX })
    const last = slots.at(-1)
    return { cadence, slots, until: last === undefined || isKnownLast(cadence, last) ? Infinity : last }
  } catch (error) {
    // The search found no slot within its limit of steps, so no slot of this cadence is compared. The edit is possible all the same.
    if (!(error instanceof SearchLimitError)) throw error
    return { cadence, slots: [], until: from - 1 }
  }
}

function isKnownLast(cadence: Cadence, slot: number): boolean {
  try {
    return cadence.isExhausted(slot)
  } catch (error) {
    if (!(error instanceof SearchLimitError)) throw error
    return false
  }
}

/**
 * The earliest instant whose slots an edit of the cadence removes. With a spread, a slot whose instant has passed may not be due yet:
 * the edit removes it as well.
 */
function firstAwaited({ nextSlotAt, dueAt }: Schedule, now: number): number {
  return nextSlotAt !== null && dueAt !== null && dueAt > now ? Math.min(nextSlotAt, now + 1) : now + 1
}

/** Null if this version cannot read the cadence: an edit is the way to repair such a schedule. */
function readableCadence(schedule: Schedule): Cadence | null {
  try {
    return readCadence(schedule.cadence)
  } catch (error) {
    if (!(error instanceof CarillonError)) throw error
    return null
  }
}
