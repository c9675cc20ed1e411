import type { Density } from '../time/dst-policy.ts'
import { DAY_MS, HOUR_MS, dayOf } from '../time/wall-time.ts'
import type { WallTime } from '../time/wall-time.ts'
import type { StepBudget } from './step-budget.ts'
import type { WallTimeRule } from './wall-time-rule.ts'

/** The smallest and the largest distance between neighbours on a circle, where the last and the first are neighbours too. */
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

/** The density of a rule that has the same times on each of its days. */
export function densityOf(timesOfDay: readonly number[]): Density {
  if (timesOfDay.length > 0 && spacingOnCircle(timesOfDay, DAY_MS).max <= HOUR_MS) return 'continuous'
  const isRepeating = timesOfDay.some((time, index) => time - (timesOfDay[index - 1] ?? -Infinity) <= HOUR_MS)
  return isRepeating ? 'repeating' : 'fixed'
}

const SAMPLED_WALLS = 200
const SAMPLED_MS = 400 * DAY_MS

/** The density of a rule whose times differ from day to day, estimated from its first members. */
export function sampledDensity(rule: WallTimeRule, start: WallTime, budget: StepBudget): Density {
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
