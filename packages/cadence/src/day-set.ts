import type { StepBudget } from './step-budget.ts'
import type { DayNumber } from './wall.ts'
import { FIRST_YEAR, LAST_YEAR, dateOf, dayNumberOf, daysInMonth } from './wall.ts'

/** One month of the calendar. */
export interface Month {
  readonly year: number
  /** 1 to 12. */
  readonly month: number
  readonly first: DayNumber
  readonly length: number
}

/** The days of a month that belong to a set: bit d is day d. Bit 0 is never set. */
export type MonthDays = (month: Month) => number

// The calendar repeats after 400 years: a date that none of them has does not exist.
const SEARCH_MONTHS = 400 * 12
export const SEARCH_DAYS = 146_097

// What working out a month costs. Charged for one that is at hand too, or the answer would depend on earlier questions.
const STEPS_PER_MONTH = 10

/** A set of days given month by month, searched a month at a time. */
export class DaySet {
  readonly #daysOf: MonthDays
  // The month looked at last, because neighbouring questions fall into the same one.
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
      // Math.clz32 counts from the top: isolating the lowest bit first finds the earliest day.
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

/** All days of a month. */
export function allDays({ length }: Month): number {
  return length === 31 ? -2 : (1 << (length + 1)) - 2
}
