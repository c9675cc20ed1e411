import { SearchLimitError, type Cadence } from '@carillon/cadence'

import type { Caller } from '../caller.ts'
import { CarillonError } from '../errors.ts'
import { placeOf } from '../place.ts'
import type { Schedule } from '../schedule.ts'
import { readRules, requireSecrets } from './input-rules.ts'
import { cadenceOf } from './schedule-cadence.ts'
import { requireRevision } from './schedule-change.ts'
import { decideEdit, type EditDecision } from './schedule-edit.ts'
import { grantForEdit } from './schedule-grant.ts'
import type { ScheduleEdit } from './schedule-input.ts'
import { getIn } from './schedule-reads.ts'
import type { SchedulerContext } from './scheduler-context.ts'
import type { ChangeOptions, SlotPreview } from './scheduler-options.ts'

/** What an edit would do. */
export interface EditPlan {
  /** The revision that it was made from. */
  readonly basedOn: number
  /** As it would be; as it is, if the edit changes nothing. */
  readonly schedule: Schedule
  /** Slots that only the edited cadence has, the earliest first; at most 50. */
  readonly added: readonly SlotPreview[]
  /** Slots that only the cadence of today has, the earliest first; at most 50. */
  readonly removed: readonly SlotPreview[]
  /** Up to which slot both were compared, inclusive; null if to the end of both. */
  readonly comparedUntil: number | null
}

/** The next slots of a cadence. */
interface Outlook {
  readonly cadence: Cadence | null
  readonly slots: readonly number[]
  /** Up to where there are no others; infinite if none follows. */
  readonly until: number
}

const COMPARED_MAX = 100
const REPORTED_MAX = 50
const NOTHING: Outlook = { cadence: null, slots: [], until: Infinity }

/** Takes no lock and writes nothing: what it says holds for the revision that it was read from. */
export async function planEdit(
  context: SchedulerContext,
  caller: Caller,
  id: string,
  edit: ScheduleEdit,
  { revision }: ChangeOptions,
): Promise<EditPlan> {
  const { schedule, decision, grant, now } = await context.transact(caller, async (tx) => {
    const schedule = await getIn(tx, caller, id)
    requireRevision(schedule, revision)
    const rules = await readRules(context, tx, caller)
    const { now } = rules
    const decision = decideEdit(schedule, edit, rules)
    await requireSecrets(context, tx, caller, decision.checked)
    const { requiredScope: scope } = decision.checked
    const [place, currentId] = [placeOf(caller), schedule.grantId]
    const grant = await grantForEdit(tx, { place, scheduleId: id, grantId: edit.grantId, currentId, scope, now })
    return { schedule, decision, grant, now }
  })
  const isUnchanged = decision.isUnchanged && grant.id === schedule.grantId
  const planned = isUnchanged ? schedule : plannedSchedule(schedule, decision, grant.id, { actor: caller.subject, now })
  const plan = { basedOn: schedule.revision, schedule: planned }
  if (!decision.isNewCadence) return { ...plan, added: [], removed: [], comparedUntil: null }
  const old = outlookOf(readableCadence(schedule), firstAwaited(schedule, now))
  return { ...plan, ...compareOutlooks(old, outlookOf(decision.checked.cadence, now + 1)) }
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
    cadence: cadence.spec,
    // As it would come back from the database: what is undefined is not there.
    target: JSON.parse(JSON.stringify(target)) as Schedule['target'],
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
    // Too sparse to be followed: nothing is known of it, and an edit asks no more of it.
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

/** A slot may be past and, by the spread, not due yet: an edit of the cadence takes it away. */
function firstAwaited({ nextSlotAt, dueAt }: Schedule, now: number): number {
  return nextSlotAt !== null && dueAt !== null && dueAt > now ? Math.min(nextSlotAt, now + 1) : now + 1
}

/** Null if it cannot be read any more: to edit it is how that is mended. */
function readableCadence(schedule: Schedule): Cadence | null {
  try {
    return cadenceOf(schedule)
  } catch (error) {
    if (!(error instanceof CarillonError)) throw error
    return null
  }
}
