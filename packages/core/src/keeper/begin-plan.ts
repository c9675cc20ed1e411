import { AUTO_PAUSE_REASON, shouldAutoPause } from '../policy/auto-pause.ts'
import { decideBegin, type BeginDecision } from '../policy/begin.ts'
import { checkGrant, isRefusal, type Refusal } from '../policy/grant.ts'
import { countSuperseded, type SupersededRun } from '../policy/overlap.ts'
import type { SchedulePolicy } from '../policy/schedule-policy.ts'
import { spreadOffsetMs } from '../policy/spread.ts'
import type { Advance } from '../store/begin.ts'
import type { ClaimedSchedule } from '../store/claimed-schedules.ts'
import { newRun, type NewRun } from '../store/new-run.ts'
import type { DueSlots, SlotBook } from './slot-book.ts'

/** Everything that begin will write for one schedule. */
export interface BeginPlan {
  readonly schedule: ClaimedSchedule
  readonly advance: Advance
  readonly runs: readonly NewRun[]
  readonly supersede: readonly SupersededRun[]
  readonly cancel: readonly string[]
}

const UNREADABLE_REASON = 'auto:unreadable_spec'

interface PlanOptions {
  readonly book: SlotBook
  readonly now: number
  /** What is older is not remembered. */
  readonly ledgerFrom: number
  /** How many slots get their lines at most; the rest stays due. */
  readonly slotsMax: number
}

/**
 * Decides what becomes of a claimed schedule's due slots. Never throws: a schedule whose spec cannot be read fails alone, is
 * paused, and its slot says why.
 */
export function planBegin(schedule: ClaimedSchedule, options: PlanOptions): BeginPlan {
  const { book, now } = options
  try {
    const policy = book.policy(schedule.policy)
    const offset = spreadOffsetMs(schedule.id, policy.spreadSeconds)
    const slots = dueSlotsOf(schedule, policy, now - offset, options)
    const { autoPauseThreshold: threshold, consecutiveFailures } = schedule
    if (shouldAutoPause({ threshold, consecutiveFailures })) return planPause(schedule, slots, offset, now)
    return planSlots(schedule, slots, policy, offset, now)
  } catch (error) {
    return planUnreadable(schedule, error, now)
  }
}

/** Whether slots are left that are due already: an outage left more of them than one portion holds. */
export function isStillDue({ advance: { dueAt } }: BeginPlan, now: number): boolean {
  return dueAt !== null && dueAt <= now
}

/** Whether one run begins and the next slot is awaited, and nothing else is to be written. */
export function isOrdinary({ schedule, advance, runs }: BeginPlan): boolean {
  return (
    runs.length === 1 &&
    runs[0]?.state === 'running' &&
    advance.state === 'active' &&
    advance.runCount === 1 &&
    advance.failureCount === 0 &&
    advance.consecutiveFailures === schedule.consecutiveFailures &&
    schedule.excludedSlots.length === 0
  )
}

/**
 * What is left of a plan where slots have their lines already. A run that does not begin takes nobody's place, and is not
 * counted: it may well be the one that it would have cancelled.
 */
export function withoutTaken(plan: BeginPlan, taken: ReadonlySet<string>): BeginPlan {
  const runs = plan.runs.filter(({ id }) => !taken.has(id))
  const isBegun = plan.runs.some(({ id, state }) => taken.has(id) && (state === 'running' || state === 'pending'))
  if (!isBegun) return { ...plan, runs }
  const { advance } = plan
  const { failed } = countSuperseded(plan.supersede)
  return {
    ...nothingOpen(plan.schedule),
    runs,
    advance: {
      ...advance,
      runCount: 0,
      failureCount: advance.failureCount - failed,
      consecutiveFailures: advance.consecutiveFailures - failed,
    },
  }
}

/**
 * Slots from before the ledger's first month are passed over: their lines would be dropped as soon as they are written. But
 * what is to run however late it is does run, if nothing younger is due: the latest of them.
 */
function dueSlotsOf(
  { cadence, nextSlotAt, excludedSlots }: ClaimedSchedule,
  { missed }: SchedulePolicy,
  until: number,
  { book, ledgerFrom, slotsMax }: PlanOptions,
): DueSlots {
  const isForgotten = nextSlotAt < ledgerFrom
  const first = isForgotten ? book.firstFrom(cadence, ledgerFrom) : nextSlotAt
  if (first !== null && first <= until) {
    return withExcluded(book.dueSlots(cadence, { first, until, limit: slotsMax }), cadence, book, until, excludedSlots)
  }
  if (!isForgotten || missed === 'skip') return { due: [], next: first }
  // Not before the one that is awaited, which may be no slot of the cadence any more: rules of time zones change.
  return { due: [Math.max(book.lastBefore(cadence, ledgerFrom) ?? nextSlotAt, nextSlotAt)], next: first }
}

/**
 * A portion does not end before excluded slots: were they all that is left, the next one would have nothing to run, though
 * the latest slot that is not excluded should.
 */
function withExcluded(
  slots: DueSlots,
  cadence: string,
  book: SlotBook,
  until: number,
  excluded: readonly number[],
): DueSlots {
  let { due, next } = slots
  while (next !== null && next <= until && excluded.includes(next)) {
    due = [...due, next]
    next = book.firstFrom(cadence, next + 1)
  }
  return { due, next }
}

function planSlots(
  schedule: ClaimedSchedule,
  slots: DueSlots,
  policy: SchedulePolicy,
  offset: number,
  now: number,
): BeginPlan {
  const excluded = new Set(schedule.excludedSlots)
  const decision = decideBegin({
    slots,
    excluded,
    now,
    policy,
    spreadOffsetMs: offset,
    open: schedule.open,
    grantProblem: problemOf(schedule, now),
  })
  const refused = decision.skipped.filter(({ reason }) => isRefusal(reason)).length
  const consecutiveFailures = schedule.consecutiveFailures + refused
  const isPaused = refused > 0 && shouldAutoPause({ threshold: schedule.autoPauseThreshold, consecutiveFailures })
  const next = isPaused ? null : slots.next
  const { failed, untried } = countSuperseded(decision.supersede)
  const last = slots.due.at(-1) ?? schedule.nextSlotAt
  return {
    schedule,
    runs: runsOf(schedule, decision, now),
    supersede: decision.supersede,
    cancel: decision.cancel,
    advance: {
      scheduleId: schedule.id,
      state: isPaused ? 'paused' : next === null ? 'completed' : 'active',
      nextSlotAt: next,
      dueAt: next === null ? null : next + offset,
      excludedSlots: schedule.excludedSlots.filter((slot) => slot > last),
      consecutiveFailures: consecutiveFailures + failed,
      runCount: (decision.run === null ? 0 : 1) - untried,
      failureCount: failed,
      pausedReason: isPaused ? AUTO_PAUSE_REASON : null,
    },
  }
}

/** A person's decision first: an owner who was removed does not act, whatever the grant says. */
function problemOf({ isAccessLost, grant, requiredScope }: ClaimedSchedule, now: number): Refusal | null {
  return isAccessLost ? 'access_lost' : checkGrant({ grant, now, requiredScope })
}

/**
 * The failures that settle counted while the schedule was due already: what is due now is not run any more. If there is more
 * of it than one portion, it is paused with the last, or the rest would have no line (I6).
 */
function planPause(schedule: ClaimedSchedule, slots: DueSlots, offset: number, now: number): BeginPlan {
  const excluded = new Set(schedule.excludedSlots)
  const reasonOf = (slot: number) => (excluded.has(slot) ? 'excluded' : 'paused')
  const isLast = slots.next === null || slots.next + offset > now
  return {
    ...nothingOpen(schedule),
    runs: slots.due.map((slot) => newRun(schedule, { slot, state: 'skipped', reason: reasonOf(slot) }, now)),
    advance: isLast ? paused(schedule, AUTO_PAUSE_REASON) : movedOn(schedule, slots.next, offset),
  }
}

function movedOn(schedule: ClaimedSchedule, nextSlotAt: number, offset: number): Advance {
  return { ...paused(schedule, ''), state: 'active', nextSlotAt, dueAt: nextSlotAt + offset, pausedReason: null }
}

function planUnreadable(schedule: ClaimedSchedule, error: unknown, now: number): BeginPlan {
  const message = error instanceof Error ? error.message : String(error)
  const text = JSON.stringify({ code: 'unreadable_spec', message })
  return {
    ...nothingOpen(schedule),
    runs: [newRun(schedule, { slot: schedule.nextSlotAt, state: 'failed', error: text }, now)],
    advance: { ...paused(schedule, UNREADABLE_REASON), failureCount: 1 },
  }
}

function paused(schedule: ClaimedSchedule, reason: string): Advance {
  return {
    scheduleId: schedule.id,
    state: 'paused',
    nextSlotAt: null,
    dueAt: null,
    excludedSlots: schedule.excludedSlots,
    consecutiveFailures: schedule.consecutiveFailures,
    runCount: 0,
    failureCount: 0,
    pausedReason: reason,
  }
}

function nothingOpen(schedule: ClaimedSchedule): Pick<BeginPlan, 'schedule' | 'supersede' | 'cancel'> {
  return { schedule, supersede: [], cancel: [] }
}

function runsOf(schedule: ClaimedSchedule, { skipped, run }: BeginDecision, now: number): NewRun[] {
  const lines = skipped.map(({ slot, reason }) => newRun(schedule, { slot, state: 'skipped', reason }, now))
  if (run === null) return lines
  const waits = run.state === 'pending' ? ({ for: 'turn', targetKind: schedule.targetKind } as const) : null
  return [...lines, newRun(schedule, { ...run, waits }, now)]
}
