import { BoundedRule } from '../bounded-rule.ts'
import { DailyRule } from '../daily-rule.ts'
import type { Density } from '../dst-policy.ts'
import { densityOf, sampledDensity, spacingOnCircle } from '../spacing.ts'
import type { StepBudget } from '../step-budget.ts'
import type { WallRule } from '../wall-rule.ts'
import { DAY_MS, HOUR_MS, LAST_WALL, dayOf, dateOf, weekdayOf } from '../wall.ts'
import type { Wall } from '../wall.ts'
import { DayBasedRule } from './day-based-rule.ts'
import { rruleDays } from './rrule-days.ts'
import { isDayBased } from './rrule-parts.ts'
import type { RRuleParts } from './rrule-parts.ts'
import { TimeBasedRule } from './time-based-rule.ts'
import { timesOfDayOf } from './times-of-day.ts'

/** What an RRULE and its start come to. */
export interface RRuleRule {
  readonly rule: WallRule
  /** No two members lie closer; members of the rule may well lie further apart. */
  readonly closest: number
  readonly density: Density
}

/** `last` is where UNTIL ends the rule, in wall time; COUNT is turned into such an end here, once, by counting. */
export function createRRuleRule(parts: RRuleParts, start: Wall, last: Wall | null, budget: StepBudget): RRuleRule {
  const created = isDayBased(parts.freq) ? dayBased(parts, start, budget) : timeBased(parts, start, budget)
  const until = parts.count === null ? (last ?? LAST_WALL) : lastCounted(created.rule, start, parts.count, budget)
  return { ...created, rule: new BoundedRule(created.rule, start, until) }
}

function dayBased(parts: RRuleParts, start: Wall, budget: StepBudget): RRuleRule {
  const { byHour, byMinute, bySecond } = parts
  // Paid for before they are listed: there may be 86,400.
  budget.spend(2 * (byHour.length || 1) * (byMinute.length || 1) * (bySecond.length || 1))
  const timesOfDay = timesOfDayOf(parts, start)
  const rule = new DayBasedRule(withDayOf(parts, start), start, timesOfDay)
  const density = densityOf(timesOfDay)
  return {
    rule,
    closest: spacingOnCircle(timesOfDay, DAY_MS).min,
    // BYSETPOS may leave one of many times.
    density: parts.bySetPos.length > 0 && density !== 'fixed' ? sampledDensity(rule, start, budget) : density,
  }
}

function timeBased(parts: RRuleParts, start: Wall, budget: StepBudget): RRuleRule {
  const rule = new TimeBasedRule(parts, start)
  const timesOfDay = rule.timesOfDay()
  if (timesOfDay === null) {
    const closest = spacingOnCircle(rule.offsets, rule.stride).min
    return { rule, closest, density: closest > HOUR_MS ? 'fixed' : sampledDensity(rule, start, budget) }
  }
  // The same times every day: searched in one look, and known to be none when there are none.
  return {
    rule: new DailyRule(rruleDays(parts), timesOfDay),
    closest: spacingOnCircle(timesOfDay, DAY_MS).min,
    density: densityOf(timesOfDay),
  }
}

/** What the rule does not say about the day, its start says. */
function withDayOf(parts: RRuleParts, start: Wall): RRuleParts {
  const { freq, byMonth, byMonthDay, byYearDay, byWeekNo, byDay } = parts
  if (byMonthDay.length > 0 || byYearDay.length > 0 || byDay.length > 0) return parts
  const { month, day } = dateOf(dayOf(start))
  const sameWeekday = [{ weekday: weekdayOf(dayOf(start)), ordinal: null }]
  if (freq === 'WEEKLY' || byWeekNo.length > 0) return { ...parts, byDay: sameWeekday }
  if (freq === 'MONTHLY') return { ...parts, byMonthDay: [day] }
  if (freq === 'YEARLY') return { ...parts, byMonthDay: [day], byMonth: byMonth.length > 0 ? byMonth : [month] }
  return parts
}

function lastCounted(rule: WallRule, start: Wall, count: number, budget: StepBudget): Wall {
  let last = start - 1
  for (let counted = 0; counted < count; counted += 1) {
    const wall = rule.next(last, budget)
    if (wall === null) return LAST_WALL
    last = wall
  }
  return last
}
