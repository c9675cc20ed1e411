import type { Plan } from './work.ts'

/** The version of the format of `results.json`. It is raised if readers of the old format would misread the new one. */
export const RESULTS_VERSION = 1

/** The values of one metric, for one subject at one size, over all rounds. */
export interface Figure {
  readonly work: string
  readonly subject: string
  readonly size: number
  readonly metric: string
  readonly unit: string
  /** One value for each round, in order. */
  readonly values: readonly number[]
  readonly median: number
  readonly note?: string
}

/** A measurement that failed. */
export interface Failure {
  readonly work: string
  readonly subject: string
  readonly size: number
  /** The round, counted from 1. 0 if no part was being measured. */
  readonly round: number
  readonly reason: string
}

/** A goal, and whether it was reached. */
export interface Check {
  /** The number of the figure that the goal belongs to, from 1 to 6. */
  readonly figure: number
  /** The id of the goal. `notes/<id>.md` is its note, if there is one. */
  readonly id: string
  readonly title: string
  readonly wanted: string
  readonly measured: string
  /** Null if the figure was not measured, was measured at another size, or lacks a round that failed. */
  readonly isReached: boolean | null
  readonly standsInTheWay?: string
}

/** A measured system, and the writes that its figures include. */
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

/** A work that has run: its title, its sizes and its duration. */
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

/** The middle value. For an even count it is the mean of the two middle values, and NaN for an empty list. */
export function median(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b)
  const middle = sorted.length / 2
  const [low, high] = [sorted[Math.ceil(middle) - 1], sorted[Math.floor(middle)]]
  return low === undefined || high === undefined ? Number.NaN : (low + high) / 2
}
