import { isRefusal, messageOf, type Refusal, type ScheduleState } from '@carillon/api'

import type { DueSlots, CadenceCache } from '../cadences/cadence-cache.ts'
import type { NewLine } from '../db/new-lines.ts'
import { newLine } from '../ledger/lines.ts'
import { decideBegin, type BeginDecision } from '../policy/begin.ts'
import { checkGrant } from '../policy/grant.ts'
import { countSuperseded, type SupersededRun } from '../policy/overlap.ts'
import { AUTO_PAUSE_REASON, isUsedUp, shouldAutoPause, type SchedulePolicy } from '../policy/schedule-policy.ts'
import { spreadOffsetMs } from '../policy/spread.ts'
import type { ClaimedSchedule } from './store/claim.ts'

/** Everything that BEGIN writes for one claimed schedule. */
export interface BeginPlan {
  readonly schedule: ClaimedSchedule
  /** The lines of its due slots. */
  readonly lines: readonly NewLine[]
  /** Waiting runs that end because a new one takes their place. */
  readonly supersede: readonly SupersededRun[]
  /** Ids of running runs whose cancellation is requested. */
  readonly cancel: readonly string[]
  /** The schedule's state from now on: `active` if and only if there is a next slot (I1). */
  readonly state: Exclude<ScheduleState, 'deleted'>
  readonly nextSlotAt: number | null
  readonly dueAt: number | null
  /** Replaces the schedule's list. */
  readonly excludedSlots: readonly number[]
  /** Replaces the schedule's count. */
  readonly consecutiveFailures: number
  /** Added to the schedule's count: 1 if a run begins, minus superseded runs that were never tried. */
  readonly runCount: number
  /** Added to the schedule's count. */
  readonly failureCount: number
  /** Null unless the schedule pauses. */
  readonly pausedReason: string | null
  /** True if the run that begins is the last one that the policy allows: then `withLastRun` completes the schedule. */
  readonly isLastRun: boolean
}

/** A plan where one run begins, the schedule waits for its next slot, and nothing else changes. */
export type SingleRunPlan = BeginPlan & {
  readonly lines: readonly [NewLine]
  readonly nextSlotAt: number
  readonly dueAt: number
}

const UNREADABLE_REASON = 'auto:unreadable_spec'

interface PlanOptions {
  readonly cadences: CadenceCache
  readonly now: number
  /** The ledger keeps no lines of slots before this instant. */
  readonly ledgerFrom: number
  /** How many slots get a line at most; the rest stays due. */
  readonly slotsMax: number
}

/**
 * Decides what becomes of a claimed schedule's due slots. Never throws: a schedule whose spec cannot be read is paused, its slot's
 * line says why, and the rest of the batch goes on.
 */
export function planBegin(schedule: ClaimedSchedule, options: PlanOptions): BeginPlan {
  const { cadences, now } = options
  try {
    const policy = cadences.policy(schedule.policy)
    const offset = spreadOffsetMs(schedule.id, policy.spreadSeconds)
    const slots = dueSlotsOf(schedule, policy, now - offset, options)
    const { autoPauseThreshold: threshold, consecutiveFailures } = schedule
    if (shouldAutoPause({ threshold, consecutiveFailures })) return planPause(schedule, slots, offset, now)
    return planSlots(schedule, slots, policy, offset, now)
  } catch (error) {
    return planUnreadable(schedule, error, now)
  }
}

/** True if more slots are due than one portion holds, as after an outage. */
export function isStillDue({ dueAt }: BeginPlan, now: number): boolean {
  return dueAt !== null && dueAt <= now
}

/** True if one run begins and nothing changes but the next slot. */
export function isSingleRun(plan: BeginPlan): plan is SingleRunPlan {
  const { schedule, lines } = plan
  return (
    lines.length === 1 &&
    lines[0]?.state === 'running' &&
    plan.state === 'active' &&
    plan.nextSlotAt !== null &&
    plan.dueAt !== null &&
    plan.runCount === 1 &&
    plan.failureCount === 0 &&
    plan.consecutiveFailures === schedule.consecutiveFailures &&
    schedule.excludedSlots.length === 0
  )
}

/**
 * Drops lines whose slot already has one. If that drops the run that would begin, nothing begins, and no open run is superseded or
 * cancelled: the open run may be that existing line.
 */
export function withoutWritten(plan: BeginPlan, written: ReadonlySet<string>): BeginPlan {
  const lines = plan.lines.filter(({ id }) => !written.has(id))
  const isBegun = plan.lines.some(({ id, state }) => written.has(id) && (state === 'running' || state === 'pending'))
  if (!isBegun) return { ...plan, lines }
  const { failed } = countSuperseded(plan.supersede)
  return {
    ...plan,
    lines,
    supersede: [],
    cancel: [],
    runCount: 0,
    failureCount: plan.failureCount - failed,
    consecutiveFailures: plan.consecutiveFailures - failed,
    isLastRun: false,
  }
}

/** Completes the schedule with its last run. No due slot is lost: a run begins only if the next slot is not due. */
export function withLastRun(plan: BeginPlan): BeginPlan {
  return plan.isLastRun && plan.state === 'active'
    ? { ...plan, state: 'completed', nextSlotAt: null, dueAt: null }
    : plan
}

/**
 * The due slots that get a line. A slot older than the ledger's retention gets none: upkeep would drop its line at once. But if the
 * policy is `run_once` and no newer slot is due, the most recent of the old slots still runs.
 */
function dueSlotsOf(
  { cadence, nextSlotAt, excludedSlots }: ClaimedSchedule,
  { missed }: SchedulePolicy,
  until: number,
  { cadences, ledgerFrom, slotsMax }: PlanOptions,
): DueSlots {
  const isTooOld = nextSlotAt < ledgerFrom
  const first = isTooOld ? cadences.firstFrom(cadence, ledgerFrom) : nextSlotAt
  if (first !== null && first <= until) {
    return withExcluded(
      cadences.dueSlots(cadence, { first, until, limit: slotsMax }),
      cadence,
      cadences,
      until,
      excludedSlots,
    )
  }
  if (!isTooOld || missed === 'skip') return { due: [], next: first }
  // Not before the stored next slot. Under new time zone rules, the stored slot may no longer be one of the cadence.
  return { due: [Math.max(cadences.lastBefore(cadence, ledgerFrom) ?? nextSlotAt, nextSlotAt)], next: first }
}

/**
 * Extends a portion over the excluded slots that follow it. Otherwise the next portion might hold excluded slots only. The slot that
 * should run, the last one that is not excluded, would then be in this portion and recorded as missed.
 */
function withExcluded(
  slots: DueSlots,
  cadence: string,
  cadences: CadenceCache,
  until: number,
  excluded: readonly number[],
): DueSlots {
  let { due, next } = slots
  while (next !== null && next <= until && excluded.includes(next)) {
    due = [...due, next]
    next = cadences.firstFrom(cadence, next + 1)
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
    grantRefusal: problemOf(schedule, now),
  })
  const refused = decision.skipped.filter(({ reason }) => isRefusal(reason)).length
  const consecutiveFailures = schedule.consecutiveFailures + refused
  const isPaused = refused > 0 && shouldAutoPause({ threshold: schedule.autoPauseThreshold, consecutiveFailures })
  const next = isPaused ? null : slots.next
  const { failed, untried } = countSuperseded(decision.supersede)
  const last = slots.due.at(-1) ?? schedule.nextSlotAt
  const runCount = (decision.run === null ? 0 : 1) - untried
  return {
    schedule,
    lines: linesOf(schedule, decision, now),
    supersede: decision.supersede,
    cancel: decision.cancel,
    state: isPaused ? 'paused' : next === null ? 'completed' : 'active',
    nextSlotAt: next,
    dueAt: next === null ? null : next + offset,
    excludedSlots: schedule.excludedSlots.filter((slot) => slot > last),
    consecutiveFailures: consecutiveFailures + failed,
    runCount,
    failureCount: failed,
    pausedReason: isPaused ? AUTO_PAUSE_REASON : null,
    isLastRun: decision.run !== null && isUsedUp(policy, schedule.runCount + runCount),
  }
}

/** The removal of an owner counts before the grant: a removed owner does not act, even with a valid grant. */
function problemOf({ isAccessLost, grant, requiredScope }: ClaimedSchedule, now: number): Refusal | null {
  return isAccessLost ? 'access_lost' : checkGrant({ grant, now, requiredScope })
}

/**
 * Pauses a schedule that SETTLE did not pause because it was due already. Its due slots do not run. If they take several portions,
 * the last portion pauses it: every due slot needs its line (I6).
 */
function planPause(schedule: ClaimedSchedule, slots: DueSlots, offset: number, now: number): BeginPlan {
  const excluded = new Set(schedule.excludedSlots)
  const reasonOf = (slot: number) => (excluded.has(slot) ? 'excluded' : 'paused')
  const lines = slots.due.map((slot) => newLine(schedule, { slot, state: 'skipped', reason: reasonOf(slot) }, now))
  if (slots.next === null || slots.next + offset > now) return paused(schedule, lines, AUTO_PAUSE_REASON)
  const { next } = slots
  return { ...paused(schedule, lines, ''), state: 'active', nextSlotAt: next, dueAt: next + offset, pausedReason: null }
}

function planUnreadable(schedule: ClaimedSchedule, error: unknown, now: number): BeginPlan {
  const message = messageOf(error)
  const text = JSON.stringify({ code: 'unreadable_spec', message })
  const line = newLine(schedule, { slot: schedule.nextSlotAt, state: 'failed', error: text }, now)
  return { ...paused(schedule, [line], UNREADABLE_REASON), failureCount: 1 }
}

/** Pauses a schedule. Its open runs and its counters stay as they are. */
function paused(schedule: ClaimedSchedule, lines: readonly NewLine[], pausedReason: string): BeginPlan {
  return {
    schedule,
    lines,
    supersede: [],
    cancel: [],
    state: 'paused',
    nextSlotAt: null,
    dueAt: null,
    excludedSlots: schedule.excludedSlots,
    consecutiveFailures: schedule.consecutiveFailures,
    runCount: 0,
    failureCount: 0,
    pausedReason,
    isLastRun: false,
  }
}

function linesOf(schedule: ClaimedSchedule, { skipped, run }: BeginDecision, now: number): NewLine[] {
  const skippedLines = skipped.map(({ slot, reason }) => newLine(schedule, { slot, state: 'skipped', reason }, now))
  if (run === null) return skippedLines
  const waits = run.state === 'pending' ? ({ for: 'turn', targetKind: schedule.targetKind } as const) : null
  return [...skippedLines, newLine(schedule, { ...run, waits }, now)]
}
