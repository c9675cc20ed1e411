import type { DaySet } from '../day-set.ts'
import { SEARCH_DAYS } from '../day-set.ts'
import { ascending, firstAbove, lastBelow } from '../sorted-list.ts'
import { StepBudget } from '../step-budget.ts'
import type { WallRule } from '../wall-rule.ts'
import { DAY_MS, dateOf, dayNumberOf, dayOf } from '../wall.ts'
import type { DayNumber, Wall } from '../wall.ts'
import { rruleDays } from './rrule-days.ts'
import type { Frequency, RRuleParts } from './rrule-parts.ts'

/** Periods of a day or more: the days a period admits, times the times of day. */
export class DayBasedRule implements WallRule {
  readonly #parts: RRuleParts
  /** BYSETPOS asks for positions that no period has. */
  readonly #hasNone: boolean
  readonly #days: DaySet
  /** Milliseconds since midnight, ascending. */
  readonly #timesOfDay: readonly number[]
  readonly #calendar: PeriodCalendar
  readonly #firstPeriod: number
  // The period that BYSETPOS picked from last: neighbouring questions fall into the same one.
  #picked: { readonly period: number; readonly walls: readonly Wall[] } | undefined

  constructor(parts: RRuleParts, start: Wall, timesOfDay: readonly number[]) {
    this.#parts = { ...parts, bySetPos: withinReach(parts, timesOfDay.length) }
    this.#hasNone = parts.bySetPos.length > 0 && this.#parts.bySetPos.length === 0
    this.#days = rruleDays(parts)
    this.#timesOfDay = timesOfDay
    this.#calendar = periodCalendar(parts.freq, parts.weekStart)
    this.#firstPeriod = this.#calendar.periodOf(dayOf(start))
  }

  next(after: Wall, budget: StepBudget): Wall | null {
    if (this.#hasNone) return null
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

  previous(before: Wall, budget: StepBudget): Wall | null {
    if (this.#hasNone) return null
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

  #firstInPeriod(period: number, from: DayNumber, after: Wall, budget: StepBudget): Wall | undefined {
    if (this.#parts.bySetPos.length > 0) return firstAbove(this.#positionsOf(period, budget), after)
    const end = this.#calendar.firstDayOf(period + 1)
    for (let day: DayNumber | null = from; day !== null && day < end; day = this.#days.firstFrom(day + 1, budget)) {
      const time = firstAbove(this.#timesOfDay, after - day * DAY_MS)
      if (time !== undefined) return day * DAY_MS + time
    }
    return undefined
  }

  #lastInPeriod(period: number, until: DayNumber, before: Wall, budget: StepBudget): Wall | undefined {
    if (this.#parts.bySetPos.length > 0) return lastBelow(this.#positionsOf(period, budget), before)
    const start = this.#calendar.firstDayOf(period)
    for (let day: DayNumber | null = until; day !== null && day >= start; day = this.#days.lastUntil(day - 1, budget)) {
      const time = lastBelow(this.#timesOfDay, before - day * DAY_MS)
      if (time !== undefined) return day * DAY_MS + time
    }
    return undefined
  }

  /** What BYSETPOS picks of a period, found by its index: a year may hold 366 days × 86,400 times. */
  #positionsOf(period: number, budget: StepBudget): readonly Wall[] {
    // Charged for what is at hand too, or the answer would depend on earlier questions.
    budget.spend(daysIn(this.#parts.freq))
    if (this.#picked?.period === period) return this.#picked.walls
    const first = this.#calendar.firstDayOf(period)
    const days = this.#days.within(first, this.#calendar.firstDayOf(period + 1) - 1, new StepBudget(Infinity))
    const size = days.length * this.#timesOfDay.length
    const walls: Wall[] = []
    for (const position of this.#parts.bySetPos) {
      const index = position > 0 ? position - 1 : size + position
      const day = days[Math.floor(index / this.#timesOfDay.length)]
      const time = this.#timesOfDay[index % this.#timesOfDay.length]
      if (day !== undefined && time !== undefined) walls.push(day * DAY_MS + time)
    }
    this.#picked = { period, walls: ascending(walls) }
    return this.#picked.walls
  }
}

const DAYS_MAX: Readonly<Partial<Record<Frequency, number>>> = { DAILY: 1, WEEKLY: 7, MONTHLY: 31 }

/** The longest that a period can be. */
function daysIn(freq: Frequency): number {
  return DAYS_MAX[freq] ?? 366
}

function withinReach({ freq, bySetPos }: RRuleParts, timesPerDay: number): readonly number[] {
  const most = daysIn(freq) * timesPerDay
  return bySetPos.filter((position) => Math.abs(position) <= most)
}

/** Numbers the periods of a frequency without gaps. */
interface PeriodCalendar {
  periodOf(day: DayNumber): number
  firstDayOf(period: number): DayNumber
}

function periodCalendar(freq: Frequency, weekStart: number): PeriodCalendar {
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
