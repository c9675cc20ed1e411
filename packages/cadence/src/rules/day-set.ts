import { DAY_MS, FIRST_YEAR, LAST_YEAR, dateOf, dayNumberOf, dayOf, daysInMonth } from '../time/wall-time.ts'
import type { DayNumber, WallTime } from '../time/wall-time.ts'
import { firstAbove, lastBelow } from './sorted-list.ts'
import type { StepBudget } from './step-budget.ts'
import type { WallTimeRule } from './wall-time-rule.ts'

/** One month of the calendar. */
export interface Month {
  readonly year: number
  /** 1 to 12. */
  readonly month: number
  readonly first: DayNumber
  readonly length: number
}

/** The days of a month that belong to a set, as bits: bit d is day d, bit 0 is never set. */
export type MonthDays = (month: Month) => number

// The Gregorian calendar repeats every 400 years, so a search that finds nothing in 400 years finds nothing at all.
const SEARCH_MONTHS = 400 * 12
export const SEARCH_DAYS = 146_097

// Search steps charged per month. A cached month costs the same, because the result must not depend on earlier calls.
const STEPS_PER_MONTH = 10

/** A set of days, defined by a function of the month and searched month by month. */
export class DaySet {
  readonly #daysOf: MonthDays
  // The last requested month and its days. Cached, because consecutive calls mostly request the same month.
  #month: Month = { year: 0, month: 0, first: 0, length: 0 }
  #days = 0

  constructor(daysOf: MonthDays) {
    this.#daysOf = daysOf
  }

  has(day: DayNumber, budget: StepBudget): boolean {
    budget.spend()
    const { first, length } = this.#month
    if (day < first || day >= first + length) {
      const { year, month } = dateOf(day)
      this.#enter(year, month)
    }
    return (this.#days & (1 << (day - this.#month.first + 1))) !== 0
  }

  /** The first member on or after `day`, or null. */
  firstFrom(day: DayNumber, budget: StepBudget): DayNumber | null {
    if (this.has(day, budget)) return day
    let { year, month, day: dayOfMonth } = dateOf(day)
    for (let searched = 0; searched <= SEARCH_MONTHS && year <= LAST_YEAR; searched += 1) {
      budget.spend(STEPS_PER_MONTH)
      this.#enter(year, month)
      const days = this.#days & (-1 << dayOfMonth)
      // `days & -days` isolates the lowest bit, which is the earliest day. Math.clz32 then gives its position.
      if (days !== 0) return this.#month.first + 31 - Math.clz32(days & -days) - 1
      dayOfMonth = 1
      month += 1
      if (month > 12) {
        month = 1
        year += 1
      }
    }
    return null
  }

  /** The last member on or before `day`, or null. */
  lastUntil(day: DayNumber, budget: StepBudget): DayNumber | null {
    if (this.has(day, budget)) return day
    let { year, month, day: dayOfMonth } = dateOf(day)
    for (let searched = 0; searched <= SEARCH_MONTHS && year >= FIRST_YEAR; searched += 1) {
      budget.spend(STEPS_PER_MONTH)
      this.#enter(year, month)
      const days = this.#days & ~(-2 << dayOfMonth)
      if (days !== 0) return this.#month.first + 31 - Math.clz32(days) - 1
      dayOfMonth = 31
      month -= 1
      if (month < 1) {
        month = 12
        year -= 1
      }
    }
    return null
  }

  /** The members from `first` to `last`, in order. */
  within(first: DayNumber, last: DayNumber, budget: StepBudget): DayNumber[] {
    const members: DayNumber[] = []
    for (let day = first; day <= last;) {
      const found = this.firstFrom(day, budget)
      if (found === null || found > last) break
      members.push(found)
      day = found + 1
    }
    return members
  }

  #enter(year: number, month: number): void {
    if (year === this.#month.year && month === this.#month.month) return
    this.#month = { year, month, first: dayNumberOf(year, month, 1), length: daysInMonth(year, month) }
    this.#days = this.#daysOf(this.#month)
  }
}

/** The bits of all days of a month. */
export function allDays({ length }: Month): number {
  return length === 31 ? -2 : (1 << (length + 1)) - 2
}

/** The same times of day on every day of a set. */
export class DailyRule implements WallTimeRule {
  readonly #days: DaySet
  /** Milliseconds since midnight, ascending. */
  readonly #timesOfDay: readonly number[]

  constructor(days: DaySet, timesOfDay: readonly number[]) {
    this.#days = days
    this.#timesOfDay = timesOfDay
  }

  next(after: WallTime, budget: StepBudget): WallTime | null {
    const [earliest] = this.#timesOfDay
    if (earliest === undefined) return null
    const today = dayOf(after)
    if (this.#days.has(today, budget)) {
      const time = firstAbove(this.#timesOfDay, after - today * DAY_MS)
      if (time !== undefined) return today * DAY_MS + time
    }
    const day = this.#days.firstFrom(today + 1, budget)
    return day === null ? null : day * DAY_MS + earliest
  }

  previous(before: WallTime, budget: StepBudget): WallTime | null {
    const latest = this.#timesOfDay.at(-1)
    if (latest === undefined) return null
    const today = dayOf(before)
    if (this.#days.has(today, budget)) {
      const time = lastBelow(this.#timesOfDay, before - today * DAY_MS)
      if (time !== undefined) return today * DAY_MS + time
    }
    const day = this.#days.lastUntil(today - 1, budget)
    return day === null ? null : day * DAY_MS + latest
  }
}
