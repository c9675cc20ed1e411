import type { Failure, Figure } from '../results.ts'
import type { Sizes, WorkName } from '../work.ts'

export type SideName = 'base' | 'current'

/** The labels shown to the user. */
export const SIDE_LABELS: Readonly<Record<SideName, string>> = { base: 'base', current: 'this' }

/** The argument with which the process of a side starts. */
export interface SideArgument {
  readonly side: SideName
  /** The folder with the code of this side. */
  readonly tree: string
  /** The URL of the Postgres server that both sides share. */
  readonly postgresUrl: string
  readonly patienceMs: number
}

/** One round of one work. */
export interface SideOrder {
  readonly work: WorkName
  readonly sizes: Sizes
  /** If true, the values are not kept. */
  readonly isWarmUp: boolean
}

/** An answer to an order. The first message of a side is empty, and reports that the side is ready. */
export interface SideAnswer {
  /** The figures with the values of all rounds so far. */
  readonly figures: readonly Figure[]
  readonly failures: readonly Failure[]
  /** True if the tree does not have the work. */
  readonly isMissing: boolean
}
