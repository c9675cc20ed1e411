import { identifierAt } from '../identifier.ts'
import { AUTO_PAUSE_REASON, shouldAutoPause } from '../policy/auto-pause.ts'
import { decideBegin, type BeginDecision } from '../policy/begin.ts'
import { checkGrant } from '../policy/grant.ts'
import type { SchedulePolicy } from '../policy/schedule-policy.ts'
import { spreadOffsetMs } from '../policy/spread.ts'
import type { Advance, NewRun } from '../store/begin.ts'
import type { ClaimedSchedule } from '../store/claimed-schedules.ts'
import type { DueSlots, SlotBook } from './slot-book.ts'

/** Everything that begin will write for one schedule. */
export interface BeginPlan {
  readonly schedule: ClaimedSchedule
  readonly advance: Advance
  readonly runs: readonly NewRun[]
  readonly supersede: readonly string[]
  readonly cancel: readonly string[]
  readonly displace: readonly string[]
}

const UNREADABLE_REASON = 'auto:unreadable_spec'

// The lines of slots that an outage left behind are written in portions, so that one schedule cannot hold a batch for long.
const SLOTS_PER_BEGIN = 1000

/**
 * Decides what becomes of a claimed schedule's due slots. Never throws: a schedule whose spec cannot be read fails alone, is
 * paused, and its slot says why.
 */
export function planBegin(schedule: ClaimedSchedule, book: SlotBook, now: number, ledgerFrom: number): BeginPlan {
  try {
    const policy = book.policy(schedule.policy)
    const offset = spreadOffsetMs(schedule.id, policy.spreadSeconds)
    const slots = dueSlotsOf(schedule, book, now - offset, ledgerFrom)
    const { autoPauseThreshold: threshold, consecutiveFailures } = schedule
    if (shouldAutoPause({ threshold, consecutiveFailures })) return planPause(schedule, slots, offset, now)
    return planSlots(schedule, slots, policy, offset, now)
  } catch (error) {
    return planUnreadable(schedule, error, now)
  }
}

/** Slots from before the ledger's first month are passed over: their lines would be dropped as soon as they are written. */
function dueSlotsOf(schedule: ClaimedSchedule, book: SlotBook, until: number, ledgerFrom: number): DueSlots {
  const { cadence, nextSlotAt } = schedule
  const first = nextSlotAt < ledgerFrom ? book.firstFrom(cadence, ledgerFrom) : nextSlotAt
  if (first === null || first > until) return { due: [], next: first }
  return book.dueSlots(cadence, { first, until, limit: SLOTS_PER_BEGIN })
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
    grantProblem: checkGrant({ grant: schedule.grant, now, requiredScope: null }),
  })
  const refused = decision.skipped.filter(({ reason }) => reason.startsWith('grant_')).length
  const consecutiveFailures = schedule.consecutiveFailures + refused
  const isPaused = refused > 0 && shouldAutoPause({ threshold: schedule.autoPauseThreshold, consecutiveFailures })
  const next = isPaused ? null : slots.next
  const last = slots.due.at(-1) ?? schedule.nextSlotAt
  return {
    schedule,
    runs: runsOf(schedule, decision, now),
    supersede: decision.supersede,
    cancel: decision.cancel,
    displace: decision.displace,
    advance: {
      scheduleId: schedule.id,
      state: isPaused ? 'paused' : next === null ? 'completed' : 'active',
      nextSlotAt: next,
      dueAt: next === null ? null : next + offset,
      excludedSlots: schedule.excludedSlots.filter((slot) => slot > last),
      consecutiveFailures: consecutiveFailures + decision.supersede.length,
      runCount: decision.run === null ? 0 : 1,
      failureCount: decision.supersede.length,
      pausedReason: isPaused ? AUTO_PAUSE_REASON : null,
    },
  }
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
  const run = newRun(schedule, { slot: schedule.nextSlotAt, state: 'failed', reason: null }, now)
  return {
    ...nothingOpen(schedule),
    runs: [{ ...run, error: JSON.stringify({ code: 'unreadable_spec', message }) }],
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

function nothingOpen(schedule: ClaimedSchedule): Pick<BeginPlan, 'schedule' | 'supersede' | 'cancel' | 'displace'> {
  return { schedule, supersede: [], cancel: [], displace: [] }
}

function runsOf(schedule: ClaimedSchedule, { skipped, run }: BeginDecision, now: number): NewRun[] {
  const lines = skipped.map(({ slot, reason }) => newRun(schedule, { slot, state: 'skipped', reason }, now))
  return run === null ? lines : [...lines, newRun(schedule, { ...run, reason: null }, now)]
}

function newRun(
  schedule: ClaimedSchedule,
  { slot, state, reason }: { slot: number } & Pick<NewRun, 'state' | 'reason'>,
  now: number,
): NewRun {
  return {
    id: identifierAt(now),
    scheduleId: schedule.id,
    tenantId: schedule.tenantId,
    projectId: schedule.projectId,
    revision: schedule.revision,
    scheduledFor: slot,
    trigger: 'schedule',
    state,
    reason,
    error: null,
  }
}
