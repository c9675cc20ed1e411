import { describeDate, formatTime } from './english/time-phrase.ts'
import type { StepBudget } from './rules/step-budget.ts'
import type { WallTimeRule } from './rules/wall-time-rule.ts'
import type { SlotSource } from './slots/slot-source.ts'
import type { DstEffect, DstPolicy, WarningCode } from './time/dst-policy.ts'
import { formatWallTime } from './time/moment-text.ts'
import { DAY_MS, modulo } from './time/wall-time.ts'
import type { WallTime } from './time/wall-time.ts'
import type { Segment, Zone } from './time/zone.ts'

/** A DST change that affects a cadence. Any change of a zone's UTC offset counts as a DST change. */
export interface Warning {
  readonly code: WarningCode
  /** The instant of the DST change, in epoch milliseconds. */
  readonly at: number
  /** The first local time of the cadence that the change affects, such as `2027-03-14T02:30:00`. */
  readonly local: string
  /** How many local times of the cadence the change affects; counting stops at 1,000. */
  readonly count: number
  readonly effect: DstEffect
  /** A full sentence for the user. */
  readonly message: string
}

const HORIZON_MS = 2 * 366 * DAY_MS
const COUNT_MAX = 1000

export interface WarningRange {
  /** The search for DST changes starts at `from`. It ends at `to`, the last instant that may be a slot, or earlier. */
  readonly from: number
  readonly to: number
}

/** The DST changes in the two years after `from` that affect a rule, in order. */
export function findWarnings(
  { rule, dst }: { readonly rule: WallTimeRule; readonly dst: DstPolicy },
  source: SlotSource,
  zone: Zone,
  { from, to }: WarningRange,
  createBudget: () => StepBudget,
): Warning[] {
  const warnings: Warning[] = []
  const horizon = Math.min(to, from + HORIZON_MS)
  // Starts a day early, because a fold that began before `from` may still be going on.
  for (let before = zone.segmentAt(from - DAY_MS); before.end <= horizon;) {
    const after = zone.segmentAt(before.end)
    // Each DST change has its own budget, because each is a separate search. There are only a few.
    const budget = createBudget()
    const walls = affectedWallTimes(rule, before, after, budget)
    const isAhead = after.start + Math.max(0, before.offset - after.offset) > from
    if (walls.count > 0 && isAhead && hasSlots(source, dst, before, after, budget)) {
      warnings.push(describeChange(zone, dst, before, after, walls))
    }
    before = after
  }
  return warnings
}

/** False if the instants in `exdates` and UNTIL exclude every affected slot: then there is nothing to warn about. */
function hasSlots(source: SlotSource, dst: DstPolicy, before: Segment, after: Segment, budget: StepBudget): boolean {
  const change = after.start
  const fold = before.offset - after.offset
  if (fold < 0) return dst.gap === 'skip' || source.next(change - 1, budget) === change
  const slot = source.next(change - fold - 1, budget)
  return slot !== null && slot < change + fold
}

interface AffectedWallTimes {
  readonly first: WallTime
  readonly last: WallTime
  readonly count: number
}

/** The wall times of a rule that a DST change skips or repeats. */
function affectedWallTimes(rule: WallTimeRule, before: Segment, after: Segment, budget: StepBudget): AffectedWallTimes {
  const edges = [after.start + before.offset, after.start + after.offset]
  const end = Math.max(...edges)
  let wall = rule.next(Math.min(...edges) - 1, budget)
  const first = wall ?? end
  let last = first
  let count = 0
  while (wall !== null && wall < end && count < COUNT_MAX) {
    count += 1
    last = wall
    wall = rule.next(wall, budget)
  }
  return { first, last, count }
}

function describeChange(
  zone: Zone,
  dst: DstPolicy,
  before: Segment,
  after: Segment,
  walls: AffectedWallTimes,
): Warning {
  const { first, last, count } = walls
  const date = describeDate(first)
  const isMany = count > 1
  const times = isMany ? `${count} local times from ${clock(first)} to ${clock(last)}` : clock(first)
  const shared = { at: after.start, local: formatWallTime(first), count }
  if (after.offset > before.offset) {
    const fate = dst.gap === 'shift' ? `run once, at ${clock(after.start + after.offset)}` : 'do not run'
    const one = dst.gap === 'shift' ? fate.replace('run', 'runs') : 'does not run'
    const message = isMany
      ? `On ${date}, ${times} do not exist in ${zone.name}, because the clocks go forward: they ${fate}.`
      : `On ${date}, ${times} does not exist in ${zone.name}, because the clocks go forward: it ${one}.`
    return { code: 'dst_gap', ...shared, effect: dst.gap === 'shift' ? 'shifted' : 'skipped', message }
  }
  const passes = { first: 'the first time', second: 'the second time', both: 'both times' }
  const effects = { first: 'first_pass', second: 'second_pass', both: 'both_passes' } as const
  const message = isMany
    ? `On ${date}, ${times} happen twice in ${zone.name}, because the clocks go back: they run ${passes[dst.fold]}.`
    : `On ${date}, ${times} happens twice in ${zone.name}, because the clocks go back: it runs ${passes[dst.fold]}.`
  return { code: 'dst_fold', ...shared, effect: effects[dst.fold], message }
}

function clock(wall: WallTime): string {
  return formatTime(modulo(wall, DAY_MS))
}
