import type { Duration } from './duration-text.ts'
import type { WallRule } from './wall-rule.ts'
import { DAY_MS, LAST_WALL, dateOf, dayNumberOf, dayOf, daysInMonth } from './wall.ts'
import type { Wall } from './wall.ts'

const MEAN_MONTH_DAYS = 146_097 / 4800

/**
 * Local times at a calendar distance: member n is the start plus n times the duration, counted from the start each time,
 * so that a month's end that was clamped (31 January, 28 February) does not pull the later ones down.
 */
export class CalendarIntervalRule implements WallRule {
  readonly #start: Wall
  readonly #duration: Duration
  readonly #meanMs: number

  constructor(start: Wall, duration: Duration) {
    this.#start = start
    this.#duration = duration
    this.#meanMs = (duration.months * MEAN_MONTH_DAYS + duration.days) * DAY_MS + duration.timeMs
  }

  next(after: Wall): Wall | null {
    let index = Math.max(0, this.#estimate(after))
    while (index > 0 && this.#at(index - 1) > after) index -= 1
    while (this.#at(index) <= after) index += 1
    const wall = this.#at(index)
    return wall > LAST_WALL ? null : wall
  }

  previous(before: Wall): Wall | null {
    let index = Math.max(0, this.#estimate(before))
    while (this.#at(index + 1) < before) index += 1
    while (index >= 0 && this.#at(index) >= before) index -= 1
    return index < 0 ? null : this.#at(index)
  }

  /** Off by a few at most: months differ from their mean, but never drift from it. */
  #estimate(wall: Wall): number {
    return Math.floor((wall - this.#start) / this.#meanMs)
  }

  #at(index: number): Wall {
    const { months, days, timeMs } = this.#duration
    const startDay = dayOf(this.#start)
    let day = startDay
    if (months > 0) {
      const date = dateOf(startDay)
      const monthIndex = date.year * 12 + date.month - 1 + index * months
      const year = Math.floor(monthIndex / 12)
      const month = (monthIndex % 12) + 1
      day = dayNumberOf(year, month, Math.min(date.day, daysInMonth(year, month)))
    }
    return (day + index * days) * DAY_MS + (this.#start - startDay * DAY_MS) + index * timeMs
  }
}
