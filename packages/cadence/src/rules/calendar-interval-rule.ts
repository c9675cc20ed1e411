import type { Duration } from '../time/duration.ts'
import { DAY_MS, LAST_WALL_TIME, dateOf, dayNumberOf, dayOf, daysInMonth } from '../time/wall-time.ts'
import type { WallTime } from '../time/wall-time.ts'
import type { WallTimeRule } from './wall-time-rule.ts'

const MEAN_MONTH_DAYS = 146_097 / 4800

/**
 * Wall times at a calendar distance. Member n is the start plus n times the duration, always counted from the start: a
 * month that is too short clamps one member (31 January, 28 February) and does not shift the later ones.
 */
export class CalendarIntervalRule implements WallTimeRule {
  readonly #start: WallTime
  readonly #duration: Duration
  readonly #meanMs: number

  constructor(start: WallTime, duration: Duration) {
    this.#start = start
    this.#duration = duration
    this.#meanMs = (duration.months * MEAN_MONTH_DAYS + duration.days) * DAY_MS + duration.timeMs
  }

  next(after: WallTime): WallTime | null {
    let index = Math.max(0, this.#estimate(after))
    while (index > 0 && this.#at(index - 1) > after) index -= 1
    while (this.#at(index) <= after) index += 1
    const wall = this.#at(index)
    return wall > LAST_WALL_TIME ? null : wall
  }

  previous(before: WallTime): WallTime | null {
    let index = Math.max(0, this.#estimate(before))
    while (this.#at(index + 1) < before) index += 1
    while (index >= 0 && this.#at(index) >= before) index -= 1
    return index < 0 ? null : this.#at(index)
  }

  /** Estimates the index of the member at a wall time. It is off by a few at most, because the lengths of months average out. */
  #estimate(wall: WallTime): number {
    return Math.floor((wall - this.#start) / this.#meanMs)
  }

  #at(index: number): WallTime {
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
