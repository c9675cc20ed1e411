import { BoundedRule } from '../bounded-rule.ts'
import { DailyRule } from '../daily-rule.ts'
import { closestOnCircle } from '../spacing.ts'
import type { StepBudget } from '../step-budget.ts'
import type { WallRule } from '../wall-rule.ts'
import { DAY_MS, HOUR_MS, LAST_WALL, MINUTE_MS, SECOND_MS, dayOf, dateOf, modulo, weekdayOf } from '../wall.ts'
import type { Wall } from '../wall.ts'
import { DayBasedRule } from './day-based-rule.ts'
import { rruleDays } from './rrule-days.ts'
import { isDayBased } from './rrule-parts.ts'
import type { RRuleParts } from './rrule-parts.ts'
import { TimeBasedRule } from './time-based-rule.ts'

/** What an RRULE and its start come to. */
export interface RRuleRule {
  readonly rule: WallRule
  /** No two members lie closer; members of the rule may well lie further apart. */
  readonly closest: number
}

/** `last` is where UNTIL ends the rule, in wall time; COUNT is turned into such an end here, once, by counting. */
export function createRRuleRule(parts: RRuleParts, start: Wall, last: Wall | null, budget: StepBudget): RRuleRule {
  const { rule, closest } = isDayBased(parts.freq) ? dayBased(parts, start) : timeBased(parts, start)
  const until = parts.count === null ? (last ?? LAST_WALL) : lastCounted(rule, start, parts.count, budget)
  return { rule: new BoundedRule(rule, start, until), closest }
}

function dayBased(parts: RRuleParts, start: Wall): RRuleRule {
  const timesOfDay = timesOfDayOf(parts, start)
  return {
    rule: new DayBasedRule(withDayOf(parts, start), start, timesOfDay),
    closest: closestOnCircle(timesOfDay, DAY_MS),
  }
}

function timeBased(parts: RRuleParts, start: Wall): RRuleRule {
  const rule = new TimeBasedRule(parts, start)
  const timesOfDay = rule.timesOfDay()
  if (timesOfDay === null) return { rule, closest: closestOnCircle(rule.offsets, rule.stride) }
  // The same times every day: searched in one look, and known to be none when there are none.
  return { rule: new DailyRule(rruleDays(parts), timesOfDay), closest: closestOnCircle(timesOfDay, DAY_MS) }
}

function timesOfDayOf({ byHour, byMinute, bySecond }: RRuleParts, start: Wall): number[] {
  const hours = byHour.length > 0 ? byHour : [Math.floor(modulo(start, DAY_MS) / HOUR_MS)]
  const minutes = byMinute.length > 0 ? byMinute : [Math.floor(modulo(start, HOUR_MS) / MINUTE_MS)]
  const seconds = bySecond.length > 0 ? bySecond : [Math.floor(modulo(start, MINUTE_MS) / SECOND_MS)]
  return hours.flatMap((hour) =>
    minutes.flatMap((minute) => seconds.map((second) => hour * HOUR_MS + minute * MINUTE_MS + second * SECOND_MS)),
  )
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
