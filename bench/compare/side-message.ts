import type { Failure, Figure } from '../results.ts'
import type { Sizes, WorkName } from '../work.ts'

export type SideName = 'base' | 'current'

/** The labels shown to the user. */
export const SIDE_LABELS: Readonly<Record<SideName, string>> = { base: 'base', current: 'this' }

/** What the process of a side is started with. */
export interface SideArgument {
  readonly side: SideName
  /** The folder whose code it runs. */
  readonly tree: string
  /** Of the Postgres server that both sides share. */
  readonly postgresUrl: string
  readonly patienceMs: number
}

/** One round of one work. */
export interface SideOrder {
  readonly work: WorkName
  readonly sizes: Sizes
  /** Its values are not kept. */
  readonly isWarmUp: boolean
}

/** The first message of a side has nothing in it and says that the side is ready; the others each answer an order. */
export interface SideAnswer {
  /** With the values of all rounds so far. */
  readonly figures: readonly Figure[]
  readonly failures: readonly Failure[]
  /** Whether the tree has no such work. */
  readonly isMissing: boolean
}
