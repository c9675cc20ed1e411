import type { StepBudget } from './step-budget.ts'
import type { WallRule } from './wall-rule.ts'
import { HOUR_MS, dayOf } from './wall.ts'
import type { Wall } from './wall.ts'

/** The smallest distance of two neighbours in an ascending list; Infinity if there are none. */
export function closestOnLine(ascending: readonly number[]): number {
  let closest = Infinity
  for (let index = 1; index < ascending.length; index += 1) {
    closest = Math.min(closest, (ascending[index] ?? 0) - (ascending[index - 1] ?? 0))
  }
  return closest
}

/** The same on a circle, where the last is a neighbour of the first. */
export function closestOnCircle(ascending: readonly number[], circumference: number): number {
  const across = circumference - (ascending.at(-1) ?? 0) + (ascending[0] ?? 0)
  return Math.min(closestOnLine(ascending), across)
}

const SAMPLED_WALLS = 200

/** Whether two local times of a rule lie 60 minutes or less apart on one day, as far as its first members tell. */
export function repeatsWithinHour(rule: WallRule, start: Wall, budget: StepBudget): boolean {
  let previous = rule.next(start - 1, budget)
  for (let sampled = 1; sampled < SAMPLED_WALLS && previous !== null; sampled += 1) {
    const wall = rule.next(previous, budget)
    if (wall !== null && wall - previous <= HOUR_MS && dayOf(wall) === dayOf(previous)) return true
    previous = wall
  }
  return false
}

const HORIZON_WALLS = 2000

/** Two neighbours that lie closer than the minimum, looked for over a horizon of the rule's members. */
export function findTooClose(
  rule: WallRule,
  from: Wall,
  minimumMs: number,
  budget: StepBudget,
): readonly [Wall, Wall] | undefined {
  let previous = rule.next(from - 1, budget)
  for (let looked = 1; looked < HORIZON_WALLS && previous !== null; looked += 1) {
    const wall = rule.next(previous, budget)
    if (wall !== null && wall - previous < minimumMs) return [previous, wall]
    previous = wall
  }
  return undefined
}
