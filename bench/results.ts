import type { Plan } from './work.ts'

/** Of the shape of `results.json`. Raised when a reader of the old shape would be misled. */
export const RESULTS_VERSION = 1

/** What one subject gave at one size, over all rounds. */
export interface Figure {
  readonly work: string
  readonly subject: string
  readonly size: number
  readonly metric: string
  readonly unit: string
  /** One for each round, in their order. */
  readonly values: readonly number[]
  readonly median: number
  readonly note?: string
}

/** A measurement that failed. */
export interface Failure {
  readonly work: string
  readonly subject: string
  readonly size: number
  /** Counted from 1; 0 where no part was being measured. */
  readonly round: number
  readonly reason: string
}

/** A goal, and whether it was reached. */
export interface Check {
  /** Of the figure it belongs to, 1 to 6. */
  readonly figure: number
  /** Its note, if there is one, is `notes/<id>.md`. */
  readonly id: string
  readonly title: string
  readonly wanted: string
  readonly measured: string
  /** Null where it was not measured, not at the size that the figure is about, or not in every round because one failed. */
  readonly isReached: boolean | null
  readonly standsInTheWay?: string
}

/** A measured system, and what its figures include. */
interface Subject {
  readonly name: string
  readonly version: string
  readonly leaves: string
  readonly setUp: string
}

export interface Machine {
  readonly cpu: string
  readonly cores: number
  readonly memoryGigabytes: number
  readonly os: string
  readonly kernel: string
}

/** A work as it was done: its heading, how much of it, and how long it took. */
export interface WorkRecord {
  readonly name: string
  readonly title: string
  readonly sizes: unknown
  readonly rounds: number
  readonly seconds: number
}

export interface Results {
  readonly version: typeof RESULTS_VERSION
  readonly plan: string
  readonly command: string
  readonly startedAt: string
  readonly seconds: number
  readonly isComplete: boolean
  readonly machine: Machine
  readonly versions: Readonly<Record<string, string>>
  /** The durability settings of Postgres and Redis. */
  readonly durability: Readonly<Record<string, string>>
  readonly works: readonly WorkRecord[]
  readonly subjects: readonly Subject[]
  readonly figures: readonly Figure[]
  readonly failures: readonly Failure[]
  readonly plans: readonly Plan[]
  readonly checks: readonly Check[]
}

/** The middle one; of an even number, the mean of the two in the middle. NaN of none. */
export function median(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b)
  const middle = sorted.length / 2
  const [low, high] = [sorted[Math.ceil(middle) - 1], sorted[Math.floor(middle)]]
  return low === undefined || high === undefined ? Number.NaN : (low + high) / 2
}
