import { countOf } from './english/words.ts'
import type { CadenceDraft } from './input/cadence-draft.ts'
import type { ParseContext } from './input/parse-context.ts'
import { SearchLimitError } from './rules/step-budget.ts'
import type { StepBudget } from './rules/step-budget.ts'
import type { WallTimeRule } from './rules/wall-time-rule.ts'
import type { SlotSource } from './slots/slot-source.ts'
import { formatWallTime } from './time/moment-text.ts'
import { DAY_MS, FIRST_INSTANT, SECOND_MS } from './time/wall-time.ts'
import type { WallTime } from './time/wall-time.ts'

/**
 * Checks a cadence as a whole: it has a slot, its slots can be found, and they are not too close together.
 * @param ruleField the field to name if the rule itself is at fault
 * @returns the last instant that may be a slot; undefined if the cadence has no slot, which adds a problem
 */
export function checkDraft(
  draft: CadenceDraft,
  context: ParseContext,
  minimumMs: number,
  ruleField: string,
): number | undefined {
  const { problems, reader, budget } = context
  const last = findLastSlot(draft, context)
  if (last === undefined) {
    // If the rule has slots, but none within its bounds, the bounds are at fault.
    const hasSlots = draft.source.next(FIRST_INSTANT - 1, budget) !== null
    const field = hasSlots && reader.has('endAt') ? 'endAt' : ruleField
    problems.add('never_fires', field, 'at least one slot', 'none that ever comes due')
    return undefined
  }
  const close = describeTooClose(draft, minimumMs, budget)
  if (close !== undefined) {
    const expected = `at least ${countOf(minimumMs / SECOND_MS, 'second')} between two slots`
    problems.add('too_frequent', ruleField, expected, close)
  }
  return last
}

/** The last instant that may be a slot, by `maxRuns` or by the upper bound `to`; undefined if the cadence has no slot. */
function findLastSlot(draft: CadenceDraft, { problems, budget }: ParseContext): number | undefined {
  const { source, from, to, maxRuns, last } = draft
  const first = source.next(from - 1, budget)
  if (first === null || first > to) return undefined
  probeNextSlots(source, first, budget)
  if (maxRuns === null || last !== undefined) return Math.min(to, last ?? to)
  try {
    return findNthSlot(source, first, to, maxRuns, budget)
  } catch (error) {
    if (!(error instanceof SearchLimitError)) throw error
    const expected = 'a number that is reached within a few decades (endAt has no such limit)'
    problems.add('too_complex', 'maxRuns', expected, `${maxRuns}`)
    return to
  }
}

const PROBED_SLOTS = 2

/** Searches the two slots after the first, so that `parse` rejects a rule whose next slots are too sparse to be found. */
function probeNextSlots(source: SlotSource, first: number, budget: StepBudget): void {
  let slot: number | null = first
  for (let probed = 0; probed < PROBED_SLOTS && slot !== null; probed += 1) slot = source.next(slot, budget)
}

/** Slot number n, counted from 1, or the upper bound `to` if there are fewer slots. */
function findNthSlot(source: SlotSource, first: number, to: number, n: number, budget: StepBudget): number {
  let last = first
  for (let counted = 1; counted < n; counted += 1) {
    const slot = source.next(last, budget)
    if (slot === null || slot > to) return to
    last = slot
  }
  return last
}

/** Describes two slots that are closer than the minimum; undefined if there are none within the horizon. */
function describeTooClose(draft: CadenceDraft, minimumMs: number, budget: StepBudget): string | undefined {
  const { local, closestMs } = draft
  if (local === null) return closestMs < minimumMs ? countOf(closestMs / SECOND_MS, 'second') : undefined
  const start = draft.from + draft.zone.offsetAt(draft.from)
  const pair = closestMs < minimumMs ? findClosePair(local.rule, start, minimumMs, budget) : undefined
  const [earlier, later] = pair ?? findCloseAddition(draft, minimumMs, budget)
  if (earlier === undefined || later === undefined) return undefined
  return `${countOf((later - earlier) / SECOND_MS, 'second')} (${formatWallTime(earlier)} and ${formatWallTime(later)})`
}

const HORIZON_WALL_TIMES = 2000
const HORIZON_MS = 30 * 366 * DAY_MS

/** Two neighbouring wall times of a rule that are closer than the minimum. The search ends at either horizon. */
function findClosePair(
  rule: WallTimeRule,
  from: WallTime,
  minimumMs: number,
  budget: StepBudget,
): readonly [WallTime, WallTime] | undefined {
  let previous = rule.next(from - 1, budget)
  const horizon = (previous ?? from) + HORIZON_MS
  for (let looked = 1; looked < HORIZON_WALL_TIMES && previous !== null && previous < horizon; looked += 1) {
    const wall = rule.next(previous, budget)
    if (wall !== null && wall - previous < minimumMs) return [previous, wall]
    previous = wall
  }
  return undefined
}

/** A slot from `rdates` and its neighbour, if they are closer than the minimum; empty if there is no such pair. */
function findCloseAddition(
  { source, added = [], from, to }: CadenceDraft,
  minimumMs: number,
  budget: StepBudget,
): number[] {
  for (const slot of added.filter((at) => at >= from && at <= to)) {
    const neighbours = [source.previous(slot, budget), source.next(slot, budget)].filter((at) => at !== null)
    const near = neighbours.find((at) => at >= from && at <= to && Math.abs(at - slot) < minimumMs)
    if (near !== undefined) return [Math.min(near, slot), Math.max(near, slot)]
  }
  return []
}
