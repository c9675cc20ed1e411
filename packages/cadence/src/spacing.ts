import type { Density } from './dst-policy.ts'
import type { StepBudget } from './step-budget.ts'
import type { WallRule } from './wall-rule.ts'
import { DAY_MS, HOUR_MS, dayOf } from './wall.ts'
import type { Wall } from './wall.ts'

/** The distances of neighbours on a circle, the last and the first being neighbours too: the smallest and the largest. */
export function spacingOnCircle(ascending: readonly number[], circumference: number): { min: number; max: number } {
  let min = Infinity
  let max = 0
  let previous = (ascending.at(-1) ?? 0) - circumference
  for (const point of ascending) {
    min = Math.min(min, point - previous)
    max = Math.max(max, point - previous)
    previous = point
  }
  return { min, max }
}

/** The density of a rule whose times are the same on each of its days. */
export function densityOf(timesOfDay: readonly number[]): Density {
  if (timesOfDay.length > 0 && spacingOnCircle(timesOfDay, DAY_MS).max <= HOUR_MS) return 'continuous'
  const isRepeating = timesOfDay.some((time, index) => time - (timesOfDay[index - 1] ?? -Infinity) <= HOUR_MS)
  return isRepeating ? 'repeating' : 'fixed'
}

const SAMPLED_WALLS = 200
const SAMPLED_MS = 400 * DAY_MS

/** The same for a rule whose times differ from day to day, as far as its first members tell. */
export function sampledDensity(rule: WallRule, start: Wall, budget: StepBudget): Density {
  let isRepeating = false
  let isContinuous = true
  let previous = rule.next(start - 1, budget)
  for (let sampled = 1; sampled < SAMPLED_WALLS && previous !== null; sampled += 1) {
    const wall = rule.next(previous, budget)
    if (wall === null || wall > start + SAMPLED_MS) break
    isRepeating ||= wall - previous <= HOUR_MS && dayOf(wall) === dayOf(previous)
    isContinuous &&= wall - previous <= HOUR_MS
    previous = wall
  }
  if (!isRepeating) return 'fixed'
  return isContinuous ? 'continuous' : 'repeating'
}

const HORIZON_WALLS = 2000
const HORIZON_MS = 30 * 366 * DAY_MS

/** Two neighbours that lie closer than the minimum, looked for over a horizon of the rule's members. */
export function findClosePair(
  rule: WallRule,
  from: Wall,
  minimumMs: number,
  budget: StepBudget,
): readonly [Wall, Wall] | undefined {
  let previous = rule.next(from - 1, budget)
  const horizon = (previous ?? from) + HORIZON_MS
  for (let looked = 1; looked < HORIZON_WALLS && previous !== null && previous < horizon; looked += 1) {
    const wall = rule.next(previous, budget)
    if (wall !== null && wall - previous < minimumMs) return [previous, wall]
    previous = wall
  }
  return undefined
}
