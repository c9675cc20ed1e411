import { SEARCH_DAYS } from '../rules/day-set.ts'
import type { DaySet } from '../rules/day-set.ts'
import { ascending, firstAbove, lastBelow } from '../rules/sorted-list.ts'
import type { StepBudget } from '../rules/step-budget.ts'
import type { WallTimeRule } from '../rules/wall-time-rule.ts'
import { DAY_MS, HOUR_MS, MINUTE_MS, SECOND_MS, dayOf, modulo } from '../time/wall-time.ts'
import type { WallTime } from '../time/wall-time.ts'
import { rruleDays } from './rrule-days.ts'
import type { RRuleFrequency, RRuleParts } from './rrule-parts.ts'

const UNIT_MS: Readonly<Partial<Record<RRuleFrequency, number>>> = {
  HOURLY: HOUR_MS,
  MINUTELY: MINUTE_MS,
  SECONDLY: SECOND_MS,
}

// The most times of day that `timesOfDay` lists: one per minute. A rule with more is searched period by period, which is
// fast because its periods are close together.
const TIMES_LISTED_MAX = 1440

const SIXTY = Array.from({ length: 60 }, (_, index) => index)

// Search steps charged for checking one period.
const STEPS_PER_PERIOD = 2

/** An RRULE with periods of an hour, a minute or a second, counted in wall time from the start. */
export class TimeBasedRule implements WallTimeRule {
  readonly #days: DaySet
  /** Length of a period: one hour, minute or second. INTERVAL does not change it. */
  readonly #unitMs: number
  /** Distance between the starts of two neighbouring periods: the unit times INTERVAL. */
  readonly strideMs: number
  readonly #firstPeriodStart: WallTime
  /** The wall times of each period, in milliseconds after its start, ascending. */
  readonly offsets: readonly number[]
  readonly #hours: ReadonlySet<number>
  readonly #minutes: ReadonlySet<number>
  readonly #seconds: ReadonlySet<number>

  constructor(parts: RRuleParts, start: WallTime) {
    this.#days = rruleDays(parts)
    this.#unitMs = UNIT_MS[parts.freq] ?? SECOND_MS
    this.strideMs = this.#unitMs * parts.interval
    this.#firstPeriodStart = start - modulo(start, this.#unitMs)
    this.offsets = offsetsOf(parts, start)
    this.#hours = new Set(parts.byHour)
    // BY parts shorter than the period expand it and are in `offsets`. The others limit it and are in these sets.
    this.#minutes = new Set(this.#unitMs < HOUR_MS ? parts.byMinute : [])
    this.#seconds = new Set(this.#unitMs < MINUTE_MS ? parts.bySecond : [])
  }

  /** The times of day if they are the same every day and few enough to list; otherwise null. */
  timesOfDay(): number[] | null {
    const periods = this.#periodsOfDay()
    const [offset] = this.offsets
    if (periods === null || periods.length * this.offsets.length > TIMES_LISTED_MAX) return null
    if (offset === 0 && this.offsets.length === 1) return periods
    return periods.flatMap((period) => this.offsets.map((each) => period + each))
  }

  #periodsOfDay(): number[] | null {
    if (DAY_MS % this.strideMs !== 0) return null
    const first = modulo(this.#firstPeriodStart, this.strideMs)
    const count = DAY_MS / this.strideMs
    if (count <= TIMES_LISTED_MAX) {
      const periods: number[] = []
      for (let period = first; period < DAY_MS; period += this.strideMs) {
        if (this.#excludedTime(period) === null) periods.push(period)
      }
      return periods
    }
    // There are too many seconds to check one by one, but the limits may leave only a few of them.
    const hours = [...this.#hours]
    const minutes = this.#minutes.size > 0 ? [...this.#minutes] : SIXTY
    const seconds = this.#seconds.size > 0 ? [...this.#seconds] : SIXTY
    if ((hours.length || 24) * minutes.length * seconds.length > TIMES_LISTED_MAX) return null
    const times = (hours.length > 0 ? hours : SIXTY.slice(0, 24)).flatMap((hour) =>
      minutes.flatMap((minute) => seconds.map((second) => hour * HOUR_MS + minute * MINUTE_MS + second * SECOND_MS)),
    )
    return times.filter((time) => (time - first) % this.strideMs === 0)
  }

  next(after: WallTime, budget: StepBudget): WallTime | null {
    // BYSETPOS may name only positions that no period has.
    if (this.offsets.length === 0) return null
    // Starts with the period that contains `after`: it may have a later member.
    let period = this.#periodFrom(after - this.#unitMs + 1)
    const horizon = after + SEARCH_DAYS * DAY_MS
    while (period <= horizon) {
      budget.spend(STEPS_PER_PERIOD)
      const block = this.#excludedBlock(period, budget)
      if (block === null) {
        const offset = firstAbove(this.offsets, after - period)
        if (offset !== undefined) return period + offset
        period += this.strideMs
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

  previous(before: WallTime, budget: StepBudget): WallTime | null {
    if (this.offsets.length === 0) return null
    let period = this.#periodUntil(before)
    const horizon = before - SEARCH_DAYS * DAY_MS
    while (period >= horizon) {
      budget.spend(STEPS_PER_PERIOD)
      const block = this.#excludedBlock(period, budget)
      if (block === null) {
        const offset = lastBelow(this.offsets, before - period)
        if (offset !== undefined) return period + offset
        period -= this.strideMs
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

  /** The length in milliseconds of the day, hour, minute or second around `period` that the rule excludes; null if none. */
  #excludedBlock(period: WallTime, budget: StepBudget): number | null {
    return this.#days.has(dayOf(period), budget) ? this.#excludedTime(modulo(period, DAY_MS)) : DAY_MS
  }

  #excludedTime(time: number): number | null {
    if (this.#hours.size > 0 && !this.#hours.has(Math.floor(time / HOUR_MS))) return HOUR_MS
    if (this.#minutes.size > 0 && !this.#minutes.has(Math.floor(time / MINUTE_MS) % 60)) return MINUTE_MS
    if (this.#seconds.size > 0 && !this.#seconds.has(Math.floor(time / SECOND_MS) % 60)) return SECOND_MS
    return null
  }

  /** The first period that starts at or after a wall time. */
  #periodFrom(wall: WallTime): WallTime {
    return this.#firstPeriodStart + Math.ceil((wall - this.#firstPeriodStart) / this.strideMs) * this.strideMs
  }

  /** The last period that starts at or before a wall time. */
  #periodUntil(wall: WallTime): WallTime {
    return this.#firstPeriodStart + Math.floor((wall - this.#firstPeriodStart) / this.strideMs) * this.strideMs
  }
}

function offsetsOf({ freq, byMinute, bySecond, bySetPos }: RRuleParts, start: WallTime): number[] {
  const startMinute = Math.floor(modulo(start, HOUR_MS) / MINUTE_MS)
  const startSecond = Math.floor(modulo(start, MINUTE_MS) / SECOND_MS)
  const minutes = freq === 'HOURLY' ? (byMinute.length > 0 ? byMinute : [startMinute]) : [0]
  const seconds = freq === 'SECONDLY' ? [0] : bySecond.length > 0 ? bySecond : [startSecond]
  const all = minutes.flatMap((minute) => seconds.map((second) => minute * MINUTE_MS + second * SECOND_MS))
  if (bySetPos.length === 0) return all
  const picked = bySetPos.map((position) => all[position > 0 ? position - 1 : all.length + position])
  return ascending(picked.filter((offset) => offset !== undefined))
}
