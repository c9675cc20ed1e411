import type { DstPolicy } from './dst-policy.ts'
import { formatWall, formatZoned } from './moment-text.ts'
import type { StepBudget } from './step-budget.ts'
import type { WallRule } from './wall-rule.ts'
import { DAY_MS } from './wall.ts'
import type { Wall } from './wall.ts'
import type { Segment, Zone } from './zone.ts'

/** A date on which a change of the clocks touches a cadence. */
export interface Warning {
  readonly code: 'dst_gap' | 'dst_fold'
  /** When the clocks change. */
  readonly at: number
  /** The first local time concerned, such as `2027-03-14T02:30:00`. */
  readonly local: string
  /** How many local times of the cadence are concerned (counted up to 1,000). */
  readonly count: number
  readonly effect: 'shifted' | 'skipped' | 'first_pass' | 'second_pass' | 'both_passes'
  readonly message: string
}

const HORIZON_MS = 2 * 366 * DAY_MS
const COUNT_MAX = 1000

export interface WarningRange {
  /** First and last instant that may be a slot. */
  readonly from: number
  readonly to: number
}

/** The changes of the clocks in the two years from `from` on that touch a rule, in order. */
export function findWarnings(
  rule: WallRule,
  zone: Zone,
  dst: DstPolicy,
  { from, to }: WarningRange,
  budget: StepBudget,
): Warning[] {
  const warnings: Warning[] = []
  const horizon = Math.min(to, from + HORIZON_MS)
  for (let before = zone.segmentAt(from); before.end <= horizon;) {
    const after = zone.segmentAt(before.end)
    const [first, end] = touchedWalls(before, after)
    const walls = countWalls(rule, first, end, budget)
    if (walls.count > 0) warnings.push(describeChange(zone, dst, before, after, walls))
    before = after
  }
  return warnings
}

/** The local times that do not exist, or exist twice: `first <= wall < end`. */
function touchedWalls(before: Segment, after: Segment): [Wall, Wall] {
  const edges = [after.start + before.offset, after.start + after.offset]
  return [Math.min(...edges), Math.max(...edges)]
}

interface TouchedWalls {
  readonly first: Wall
  readonly count: number
}

function countWalls(rule: WallRule, from: Wall, end: Wall, budget: StepBudget): TouchedWalls {
  let wall = rule.next(from - 1, budget)
  const first = wall ?? from
  let count = 0
  while (wall !== null && wall < end && count < COUNT_MAX) {
    count += 1
    wall = rule.next(wall, budget)
  }
  return { first, count }
}

function describeChange(zone: Zone, dst: DstPolicy, before: Segment, after: Segment, walls: TouchedWalls): Warning {
  const local = formatWall(walls.first)
  const others = walls.count > 1 ? ` (and ${walls.count - 1} more)` : ''
  const what = `${local.replace('T', ' ')}${others}`
  const shared = { at: after.start, local, count: walls.count }
  if (after.offset > before.offset) {
    const landing = formatZoned(after.start, after.offset, zone.name)
    const fate = dst.gap === 'shift' ? `it runs once, at ${landing}` : 'it does not run'
    const message = `${what} does not exist in ${zone.name}: the clocks go forward, and ${fate}.`
    return { code: 'dst_gap', ...shared, effect: dst.gap === 'shift' ? 'shifted' : 'skipped', message }
  }
  const fates = {
    first: 'it runs on the first pass',
    second: 'it runs on the second pass',
    both: 'it runs on both passes',
  }
  const effects = { first: 'first_pass', second: 'second_pass', both: 'both_passes' } as const
  const message = `${what} happens twice in ${zone.name}: the clocks go back, and ${fates[dst.fold]}.`
  return { code: 'dst_fold', ...shared, effect: effects[dst.fold], message }
}
