import type { DaySet } from '../day-set.ts'
import { SEARCH_DAYS } from '../day-set.ts'
import { ascending, firstAbove, lastBelow } from '../sorted-list.ts'
import type { StepBudget } from '../step-budget.ts'
import type { WallRule } from '../wall-rule.ts'
import { DAY_MS, HOUR_MS, MINUTE_MS, SECOND_MS, dayOf, modulo } from '../wall.ts'
import type { Wall } from '../wall.ts'
import { rruleDays } from './rrule-days.ts'
import type { Frequency, RRuleParts } from './rrule-parts.ts'

const UNIT_MS: Readonly<Partial<Record<Frequency, number>>> = {
  HOURLY: HOUR_MS,
  MINUTELY: MINUTE_MS,
  SECONDLY: SECOND_MS,
}

// Every minute. What repeats more often is searched period by period, which is quick because there is one at hand.
const TIMES_LISTED_MAX = 1440

const SIXTY = Array.from({ length: 60 }, (_, index) => index)

// What looking at one period costs.
const STEPS_PER_PERIOD = 2

/** Periods of an hour, a minute or a second, counted in wall time from the start. */
export class TimeBasedRule implements WallRule {
  readonly #days: DaySet
  /** Length of a period. */
  readonly #unit: number
  /** Distance of two periods. */
  readonly stride: number
  readonly #firstPeriodStart: Wall
  /** Offsets into a period, ascending. */
  readonly offsets: readonly number[]
  readonly #hours: ReadonlySet<number>
  readonly #minutes: ReadonlySet<number>
  readonly #seconds: ReadonlySet<number>

  constructor(parts: RRuleParts, start: Wall) {
    this.#days = rruleDays(parts)
    this.#unit = UNIT_MS[parts.freq] ?? SECOND_MS
    this.stride = this.#unit * parts.interval
    this.#firstPeriodStart = start - modulo(start, this.#unit)
    this.offsets = offsetsOf(parts, start)
    this.#hours = new Set(parts.byHour)
    // What is finer than the period expands it (and is in the offsets); what is as fine or coarser limits it.
    this.#minutes = new Set(this.#unit < HOUR_MS ? parts.byMinute : [])
    this.#seconds = new Set(this.#unit < MINUTE_MS ? parts.bySecond : [])
  }

  /** The times of day, if they are the same every day and few enough to list. */
  timesOfDay(): number[] | null {
    const periods = this.#periodsOfDay()
    const [offset] = this.offsets
    if (periods === null || periods.length * this.offsets.length > TIMES_LISTED_MAX) return null
    if (offset === 0 && this.offsets.length === 1) return periods
    return periods.flatMap((period) => this.offsets.map((each) => period + each))
  }

  #periodsOfDay(): number[] | null {
    if (DAY_MS % this.stride !== 0) return null
    const first = modulo(this.#firstPeriodStart, this.stride)
    const count = DAY_MS / this.stride
    if (count <= TIMES_LISTED_MAX) {
      const periods: number[] = []
      for (let period = first; period < DAY_MS; period += this.stride) {
        if (this.#excludedTime(period) === null) periods.push(period)
      }
      return periods
    }
    // Many seconds, of which the limits may leave few.
    const hours = [...this.#hours]
    const minutes = this.#minutes.size > 0 ? [...this.#minutes] : SIXTY
    const seconds = this.#seconds.size > 0 ? [...this.#seconds] : SIXTY
    if ((hours.length || 24) * minutes.length * seconds.length > TIMES_LISTED_MAX) return null
    const times = (hours.length > 0 ? hours : SIXTY.slice(0, 24)).flatMap((hour) =>
      minutes.flatMap((minute) => seconds.map((second) => hour * HOUR_MS + minute * MINUTE_MS + second * SECOND_MS)),
    )
    return times.filter((time) => (time - first) % this.stride === 0)
  }

  next(after: Wall, budget: StepBudget): Wall | null {
    // BYSETPOS may ask for a position that no period has.
    if (this.offsets.length === 0) return null
    // The period that holds `after` may still have something to offer.
    let period = this.#periodFrom(after - this.#unit + 1)
    const horizon = after + SEARCH_DAYS * DAY_MS
    while (period <= horizon) {
      budget.spend(STEPS_PER_PERIOD)
      const block = this.#excludedBlock(period, budget)
      if (block === null) {
        const offset = firstAbove(this.offsets, after - period)
        if (offset !== undefined) return period + offset
        period += this.stride
      } else if (block === DAY_MS) {
        const day = this.#days.firstFrom(dayOf(period) + 1, budget)
        if (day === null) return null
        period = this.#periodFrom(day * DAY_MS)
      } else {
        period = this.#periodFrom(period - modulo(period, block) + block)
      }
    }
    return null
  }

  previous(before: Wall, budget: StepBudget): Wall | null {
    if (this.offsets.length === 0) return null
    let period = this.#periodUntil(before)
    const horizon = before - SEARCH_DAYS * DAY_MS
    while (period >= horizon) {
      budget.spend(STEPS_PER_PERIOD)
      const block = this.#excludedBlock(period, budget)
      if (block === null) {
        const offset = lastBelow(this.offsets, before - period)
        if (offset !== undefined) return period + offset
        period -= this.stride
      } else if (block === DAY_MS) {
        const day = this.#days.lastUntil(dayOf(period) - 1, budget)
        if (day === null) return null
        period = this.#periodUntil((day + 1) * DAY_MS - 1)
      } else {
        period = this.#periodUntil(period - modulo(period, block) - 1)
      }
    }
    return null
  }

  /** The length of the day, hour, minute or second around a period that the rule leaves out as a whole, or null. */
  #excludedBlock(period: Wall, budget: StepBudget): number | null {
    return this.#days.has(dayOf(period), budget) ? this.#excludedTime(modulo(period, DAY_MS)) : DAY_MS
  }

  #excludedTime(time: number): number | null {
    if (this.#hours.size > 0 && !this.#hours.has(Math.floor(time / HOUR_MS))) return HOUR_MS
    if (this.#minutes.size > 0 && !this.#minutes.has(Math.floor(time / MINUTE_MS) % 60)) return MINUTE_MS
    if (this.#seconds.size > 0 && !this.#seconds.has(Math.floor(time / SECOND_MS) % 60)) return SECOND_MS
    return null
  }

  /** The first period that starts at or after. */
  #periodFrom(wall: Wall): Wall {
    return this.#firstPeriodStart + Math.ceil((wall - this.#firstPeriodStart) / this.stride) * this.stride
  }

  /** The last period that starts at or before. */
  #periodUntil(wall: Wall): Wall {
    return this.#firstPeriodStart + Math.floor((wall - this.#firstPeriodStart) / this.stride) * this.stride
  }
}

function offsetsOf({ freq, byMinute, bySecond, bySetPos }: RRuleParts, start: Wall): number[] {
  const startMinute = Math.floor(modulo(start, HOUR_MS) / MINUTE_MS)
  const startSecond = Math.floor(modulo(start, MINUTE_MS) / SECOND_MS)
  const minutes = freq === 'HOURLY' ? (byMinute.length > 0 ? byMinute : [startMinute]) : [0]
  const seconds = freq === 'SECONDLY' ? [0] : bySecond.length > 0 ? bySecond : [startSecond]
  const all = minutes.flatMap((minute) => seconds.map((second) => minute * MINUTE_MS + second * SECOND_MS))
  if (bySetPos.length === 0) return all
  const picked = bySetPos.map((position) => all[position > 0 ? position - 1 : all.length + position])
  return ascending(picked.filter((offset) => offset !== undefined))
}
