import { SEARCH_DAYS } from '../rules/day-set.ts'
import type { DaySet } from '../rules/day-set.ts'
import { ascending, firstAbove, lastBelow } from '../rules/sorted-list.ts'
import { StepBudget } from '../rules/step-budget.ts'
import type { WallTimeRule } from '../rules/wall-time-rule.ts'
import { DAY_MS, dateOf, dayNumberOf, dayOf } from '../time/wall-time.ts'
import type { DayNumber, WallTime } from '../time/wall-time.ts'
import { rruleDays } from './rrule-days.ts'
import type { RRuleFrequency, RRuleParts } from './rrule-parts.ts'

/** An RRULE with periods of a day or more: the matching days of each period, each with the same times of day. */
export class DayBasedRule implements WallTimeRule {
  readonly #parts: RRuleParts
  /** True if BYSETPOS names only positions that no period is long enough to have. */
  readonly #matchesNothing: boolean
  readonly #days: DaySet
  /** Milliseconds since midnight, ascending. */
  readonly #timesOfDay: readonly number[]
  readonly #calendar: PeriodCalendar
  readonly #firstPeriod: number
  // The last requested period and the wall times that BYSETPOS selects from it. Cached, because consecutive calls mostly
  // request the same period.
  #selected: { readonly period: number; readonly walls: readonly WallTime[] } | undefined

  constructor(parts: RRuleParts, start: WallTime, timesOfDay: readonly number[]) {
    this.#parts = { ...parts, bySetPos: reachablePositions(parts, timesOfDay.length) }
    this.#matchesNothing = parts.bySetPos.length > 0 && this.#parts.bySetPos.length === 0
    this.#days = rruleDays(parts)
    this.#timesOfDay = timesOfDay
    this.#calendar = periodCalendar(parts.freq, parts.weekStart)
    this.#firstPeriod = this.#calendar.periodOf(dayOf(start))
  }

  next(after: WallTime, budget: StepBudget): WallTime | null {
    if (this.#matchesNothing) return null
    const { interval } = this.#parts
    let from = dayOf(after)
    const horizon = from + SEARCH_DAYS
    for (;;) {
      budget.spend()
      const day = this.#days.firstFrom(from, budget)
      if (day === null || day > horizon) return null
      const period = this.#calendar.periodOf(day)
      const steps = Math.ceil((period - this.#firstPeriod) / interval)
      const active = this.#firstPeriod + steps * interval
      if (active > period) {
        from = this.#calendar.firstDayOf(active)
        continue
      }
      const wall = this.#firstInPeriod(period, day, after, budget)
      if (wall !== undefined) return wall
      from = this.#calendar.firstDayOf(period + interval)
    }
  }

  previous(before: WallTime, budget: StepBudget): WallTime | null {
    if (this.#matchesNothing) return null
    const { interval } = this.#parts
    let until = dayOf(before)
    const horizon = until - SEARCH_DAYS
    for (;;) {
      budget.spend()
      const day = this.#days.lastUntil(until, budget)
      if (day === null || day < horizon) return null
      const period = this.#calendar.periodOf(day)
      const steps = Math.floor((period - this.#firstPeriod) / interval)
      const active = this.#firstPeriod + steps * interval
      if (active < period) {
        until = this.#calendar.firstDayOf(active + 1) - 1
        continue
      }
      const wall = this.#lastInPeriod(period, day, before, budget)
      if (wall !== undefined) return wall
      until = this.#calendar.firstDayOf(period - interval + 1) - 1
    }
  }

  #firstInPeriod(period: number, from: DayNumber, after: WallTime, budget: StepBudget): WallTime | undefined {
    if (this.#parts.bySetPos.length > 0) return firstAbove(this.#positionsOf(period, budget), after)
    const end = this.#calendar.firstDayOf(period + 1)
    for (let day: DayNumber | null = from; day !== null && day < end; day = this.#days.firstFrom(day + 1, budget)) {
      const time = firstAbove(this.#timesOfDay, after - day * DAY_MS)
      if (time !== undefined) return day * DAY_MS + time
    }
    return undefined
  }

  #lastInPeriod(period: number, until: DayNumber, before: WallTime, budget: StepBudget): WallTime | undefined {
    if (this.#parts.bySetPos.length > 0) return lastBelow(this.#positionsOf(period, budget), before)
    const start = this.#calendar.firstDayOf(period)
    for (let day: DayNumber | null = until; day !== null && day >= start; day = this.#days.lastUntil(day - 1, budget)) {
      const time = lastBelow(this.#timesOfDay, before - day * DAY_MS)
      if (time !== undefined) return day * DAY_MS + time
    }
    return undefined
  }

  /** The wall times that BYSETPOS selects from a period. Does not list all others: a year may hold 366 days × 86,400 times. */
  #positionsOf(period: number, budget: StepBudget): readonly WallTime[] {
    // A cached period costs the same: the result must not depend on earlier calls.
    budget.spend(maxDaysIn(this.#parts.freq))
    if (this.#selected?.period === period) return this.#selected.walls
    const first = this.#calendar.firstDayOf(period)
    const days = this.#days.within(first, this.#calendar.firstDayOf(period + 1) - 1, new StepBudget(Infinity))
    const size = days.length * this.#timesOfDay.length
    const walls: WallTime[] = []
    for (const position of this.#parts.bySetPos) {
      const index = position > 0 ? position - 1 : size + position
      const day = days[Math.floor(index / this.#timesOfDay.length)]
      const time = this.#timesOfDay[index % this.#timesOfDay.length]
      if (day !== undefined && time !== undefined) walls.push(day * DAY_MS + time)
    }
    this.#selected = { period, walls: ascending(walls) }
    return this.#selected.walls
  }
}

const DAYS_MAX: Readonly<Partial<Record<RRuleFrequency, number>>> = { DAILY: 1, WEEKLY: 7, MONTHLY: 31 }

/** The most days that a period can have. */
function maxDaysIn(freq: RRuleFrequency): number {
  return DAYS_MAX[freq] ?? 366
}

function reachablePositions({ freq, bySetPos }: RRuleParts, timesPerDay: number): readonly number[] {
  const most = maxDaysIn(freq) * timesPerDay
  return bySetPos.filter((position) => Math.abs(position) <= most)
}

/** Numbers the periods of a frequency consecutively. */
interface PeriodCalendar {
  periodOf(day: DayNumber): number
  firstDayOf(period: number): DayNumber
}

function periodCalendar(freq: RRuleFrequency, weekStart: number): PeriodCalendar {
  switch (freq) {
    case 'YEARLY':
      return { periodOf: (day) => dateOf(day).year, firstDayOf: (year) => dayNumberOf(year, 1, 1) }
    case 'MONTHLY':
      return {
        periodOf: (day) => {
          const { year, month } = dateOf(day)
          return year * 12 + month - 1
        },
        firstDayOf: (period) => dayNumberOf(Math.floor(period / 12), (period % 12) + 1, 1),
      }
    case 'WEEKLY':
      // Day 0 was a Thursday, weekday 4.
      return {
        periodOf: (day) => Math.floor((day + 4 - weekStart) / 7),
        firstDayOf: (week) => week * 7 - 4 + weekStart,
      }
    case 'DAILY':
    case 'HOURLY':
    case 'MINUTELY':
    case 'SECONDLY':
      return { periodOf: (day) => day, firstDayOf: (day) => day }
  }
}
