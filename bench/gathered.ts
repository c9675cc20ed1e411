import { EARLIEST_MS } from './clock.ts'
import { median, type Failure, type Figure } from './results.ts'
import type { Plan, Reading } from './work.ts'

/** Identifies a part: its work, subject and size. */
type Place = Pick<Figure, 'work' | 'subject' | 'size'>

/** The measurements of a run so far. */
export class Gathered {
  readonly failures: Failure[] = []
  readonly plans: Plan[] = []
  readonly #readings = new Map<string, { place: Place; reading: Reading; values: number[] }>()

  /** @throws Error if a value is impossible, and then keeps none of the readings */
  add({ work, subject, size }: Place, readings: readonly Reading[]): void {
    readings.forEach(requireSound)
    for (const reading of readings) {
      const key = JSON.stringify([work, subject, size, reading.metric])
      const row = this.#readings.get(key) ?? { place: { work, subject, size }, reading, values: [] }
      row.values.push(reading.value)
      this.#readings.set(key, row)
    }
  }

  /** Records each failure once, because a pool of twenty connections fails twenty times. */
  fail(failure: Failure): void {
    const isSame = (other: Failure): boolean => JSON.stringify(other) === JSON.stringify(failure)
    if (!this.failures.some(isSame)) this.failures.push(failure)
  }

  get figures(): readonly Figure[] {
    return [...this.#readings.values()].map(({ place, reading: { metric, unit, note }, values }) => ({
      ...place,
      metric,
      unit,
      values,
      median: median(values),
      ...(note === undefined ? {} : { note }),
    }))
  }
}

/** A NaN would look like a missed goal, and a time before its instant like a reached one. Both are faults of the measurement. */
function requireSound({ metric, unit, value }: Reading): void {
  if (Number.isFinite(value) && value >= EARLIEST_MS) return
  throw new Error(
    `expected ${metric} of a finite number from 0 on, got ${value} ${unit}: nothing of this round is kept`,
  )
}
