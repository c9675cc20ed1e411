import type { Ground, Peer } from './measure.ts'

/** The size of each work in a plan. `plan.ts` has the plans `full`, `quick` and `smoke`. */
export interface Sizes {
  /** `patienceMs` is the time limit for one drain of one subject. */
  readonly drain: { readonly counts: readonly number[]; readonly patienceMs: number }
  readonly lateness: { readonly slots: number; readonly spacingMs: number }
  /**
   * `runs` retries of slots that are `retrySpacingMs` apart, and `runs` manual runs, each `askSpacingMs` after the end of the one before.
   */
  readonly waiting: { readonly runs: number; readonly retrySpacingMs: number; readonly askSpacingMs: number }
  /** `count` slots of one tenant and one slot of another tenant, due at the same instant. */
  readonly herd: { readonly count: number }
  readonly scale: {
    readonly held: readonly { readonly schedules: number; readonly ledgerRows: number }[]
    readonly drained: number
    readonly slots: number
    readonly spacingMs: number
  }
  readonly create: { readonly count: number; readonly clients: number }
  readonly import: { readonly count: number }
  readonly http: { readonly count: number }
  readonly idle: { readonly schedules: number; readonly seconds: number }
  readonly workers: { readonly count: number }
  readonly audit: { readonly slots: number }
  readonly pages: { readonly schedules: number; readonly ledgerRows: number; readonly requests: number }
}

export type WorkName = keyof Sizes

/**
 * One kind of work, which several subjects do. It is in `works/<name>.ts` and exported as `<name>Work`. Preparations for all its parts
 * belong into `measure`, around `bench.interleave`.
 */
export interface Work<Name extends WorkName = WorkName> {
  readonly name: Name
  /** What is measured, as a heading. */
  readonly title: string
  /** Rejects only if nothing more can be measured: `interleave` records the failure of a part. */
  measure(bench: Bench, sizes: Sizes[Name]): Promise<void>
}

/** One number that a part measured in one round. */
export interface Reading {
  readonly metric: string
  /** The unit as it is printed: `/s`, `ms`, `%`, `MB`. */
  readonly unit: string
  readonly value: number
  /** A remark for the reader, which is the same in every round. */
  readonly note?: string
}

/** One subject at one size. */
export interface Part {
  /** `Carillon`, `the limit`, a peer's name. */
  readonly subject: string
  /** The number of slots, schedules held or creates: whatever the work counts. */
  readonly size: number
  /** The maximum of rounds, if a round is expensive. Undefined: all rounds. */
  readonly rounds?: number
  /**
   * Measures one round on a database of its own, which is created before and dropped after. Rejects if it fails or exceeds its time limit.
   */
  measure(ground: Ground): Promise<readonly Reading[]>
}

/** The plan with which Postgres executes one of Carillon's own reads. */
export interface Plan {
  readonly page: string
  readonly text: string
  readonly hasSeqScan: boolean
}

export interface BenchDatabase extends AsyncDisposable {
  readonly url: string
  /** Closes the remaining connections and drops the database. */
  drop(): Promise<void>
}

/** The functions for a work. The run stops everything that is created through them, even after an interrupt. */
export interface Bench {
  readonly rounds: number
  readonly peers: readonly Peer[]
  /** Undefined if no Redis is available. */
  readonly redisUrl: string | undefined
  /** Aborts if the run ends early: its time is up, or the user pressed Ctrl-C. */
  readonly signal: AbortSignal

  /**
   * Measures round 1 of every part, then round 2 of every part, and so on, and keeps the readings. A part that fails is recorded with the
   * reason and left out of later rounds, and the others continue. `isMigrated` decides whether the database of each part has Carillon's
   * schema. With 'none' the parts get no database.
   */
  interleave(parts: readonly Part[], ground: { isMigrated: boolean } | 'none'): Promise<void>
  /** Creates a database that several parts share. If `isMigrated`, it has Carillon's schema and this month's partitions. */
  createDatabase(p: { isMigrated: boolean }): Promise<BenchDatabase>
  /** Makes a resource once and keeps it to the end of the run, so that several works share it: a million schedules take minutes to load. */
  shared<Thing extends AsyncDisposable>(key: string, make: () => Promise<Thing>): Promise<Thing>
  /** Shows the current step on the progress line. */
  note(text: string): void
  /** Keeps a plan for the page of results. */
  plan(plan: Plan): void
}
