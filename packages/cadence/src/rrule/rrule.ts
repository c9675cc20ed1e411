import { DailyRule } from '../rules/day-set.ts'
import { densityOf, sampledDensity, spacingOnCircle } from '../rules/spacing.ts'
import type { StepBudget } from '../rules/step-budget.ts'
import { BoundedRule } from '../rules/wall-time-rule.ts'
import type { WallTimeRule } from '../rules/wall-time-rule.ts'
import type { Density } from '../time/dst-policy.ts'
import { DAY_MS, HOUR_MS, LAST_WALL_TIME, dateOf, dayOf, weekdayOf } from '../time/wall-time.ts'
import type { WallTime } from '../time/wall-time.ts'
import { DayBasedRule } from './day-based-rule.ts'
import { rruleDays, timesOfDayOf } from './rrule-days.ts'
import { isDayBased } from './rrule-parts.ts'
import type { RRuleParts } from './rrule-parts.ts'
import { TimeBasedRule } from './time-based-rule.ts'

/** The wall times that an RRULE yields from its start. */
export interface RRule {
  readonly rule: WallTimeRule
  /** No two wall times of the rule are closer than this. */
  readonly closestMs: number
  /** How many times the rule lists in memory: times of day, or offsets within a period. */
  readonly listedTimes: number
  readonly density: Density
}

/**
 * Builds the wall times of an RRULE. If the rule has a COUNT, counts once here to find its last wall time.
 * @param last the last wall time that UNTIL allows; null without UNTIL
 */
export function createRRule(parts: RRuleParts, start: WallTime, last: WallTime | null, budget: StepBudget): RRule {
  const created = isDayBased(parts.freq) ? dayBased(parts, start, budget) : timeBased(parts, start, budget)
  const until = parts.count === null ? (last ?? LAST_WALL_TIME) : lastCounted(created.rule, start, parts.count, budget)
  return { ...created, rule: new BoundedRule(created.rule, start, until) }
}

function dayBased(parts: RRuleParts, start: WallTime, budget: StepBudget): RRule {
  const { byHour, byMinute, bySecond } = parts
  // Charged before the times are listed: there may be 86,400 of them.
  budget.spend(2 * (byHour.length || 1) * (byMinute.length || 1) * (bySecond.length || 1))
  const timesOfDay = timesOfDayOf(parts, start)
  const rule = new DayBasedRule(withDayOf(parts, start), start, timesOfDay)
  const density = densityOf(timesOfDay)
  return {
    rule,
    closestMs: spacingOnCircle(timesOfDay, DAY_MS).min,
    listedTimes: timesOfDay.length,
    // BYSETPOS may leave few of the times, so the density is sampled.
    density: parts.bySetPos.length > 0 && density !== 'fixed' ? sampledDensity(rule, start, budget) : density,
  }
}

function timeBased(parts: RRuleParts, start: WallTime, budget: StepBudget): RRule {
  const rule = new TimeBasedRule(parts, start)
  const timesOfDay = rule.timesOfDay()
  if (timesOfDay === null) {
    const closestMs = spacingOnCircle(rule.offsets, rule.strideMs).min
    const density = closestMs > HOUR_MS ? 'fixed' : sampledDensity(rule, start, budget)
    return { rule, closestMs, listedTimes: rule.offsets.length, density }
  }
  // The times are the same every day: a daily rule finds the next one fast, and finds out at once if there is none.
  return {
    rule: new DailyRule(rruleDays(parts), timesOfDay),
    closestMs: spacingOnCircle(timesOfDay, DAY_MS).min,
    listedTimes: timesOfDay.length,
    density: densityOf(timesOfDay),
  }
}

/** Fills in the day from the start if the rule does not name days, as RFC 5545 says. */
function withDayOf(parts: RRuleParts, start: WallTime): RRuleParts {
  const { freq, byMonth, byMonthDay, byYearDay, byWeekNo, byDay } = parts
  if (byMonthDay.length > 0 || byYearDay.length > 0 || byDay.length > 0) return parts
  const { month, day } = dateOf(dayOf(start))
  const sameWeekday = [{ weekday: weekdayOf(dayOf(start)), ordinal: null }]
  if (freq === 'WEEKLY' || byWeekNo.length > 0) return { ...parts, byDay: sameWeekday }
  if (freq === 'MONTHLY') return { ...parts, byMonthDay: [day] }
  if (freq === 'YEARLY') return { ...parts, byMonthDay: [day], byMonth: byMonth.length > 0 ? byMonth : [month] }
  return parts
}

function lastCounted(rule: WallTimeRule, start: WallTime, count: number, budget: StepBudget): WallTime {
  let last = start - 1
  for (let counted = 0; counted < count; counted += 1) {
    const wall = rule.next(last, budget)
    if (wall === null) return LAST_WALL_TIME
    last = wall
  }
  return last
}
