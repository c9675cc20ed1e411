import type { Ground, Peer } from './measure.ts'

/** How much of each work a plan asks for. `plan.ts` has the plans `full`, `quick` and `smoke`. */
export interface Sizes {
  /** `patienceMs` is for one drain of one subject. */
  readonly drain: { readonly counts: readonly number[]; readonly patienceMs: number }
  readonly lateness: { readonly slots: number; readonly spacingMs: number }
  /**
   * So many retries, of slots that lie `retrySpacingMs` apart, and so many run-nows, `askSpacingMs` after the end of the one
   * before.
   */
  readonly waiting: { readonly runs: number; readonly retrySpacingMs: number; readonly askSpacingMs: number }
  /** So many of one tenant, and one slot of another, due at the same instant. */
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
 * One kind of work, done by several subjects. It lives in `works/<name>.ts` and is exported as `<name>Work`. What it
 * prepares for all its parts it prepares in `measure`, around `bench.interleave`.
 */
export interface Work<Name extends WorkName = WorkName> {
  readonly name: Name
  /** A heading: what is measured, in a few words. */
  readonly title: string
  /** Rejects only if nothing more can be measured: the failure of a part is recorded by `interleave`. */
  measure(bench: Bench, sizes: Sizes[Name]): Promise<void>
}

/** One number that a part gave in one round. */
export interface Reading {
  readonly metric: string
  /** As it is printed: `/s`, `ms`, `%`, `MB`. */
  readonly unit: string
  readonly value: number
  /** A remark for the reader; the same in every round. */
  readonly note?: string
}

/** One subject at one size. */
export interface Part {
  /** `Carillon`, `the limit`, a peer's name. */
  readonly subject: string
  /** Slots, schedules held or creates: what the work counts. */
  readonly size: number
  /** The maximum of rounds, if a round is expensive. Absent: all rounds. */
  readonly rounds?: number
  /** One round on its own database, created before and dropped after. Rejects if it fails or exceeds its time limit. */
  measure(ground: Ground): Promise<readonly Reading[]>
}

/** How Postgres answers one of Carillon's own reads. */
export interface Plan {
  readonly page: string
  readonly text: string
  readonly hasSeqScan: boolean
}

export interface BenchDatabase extends AsyncDisposable {
  readonly url: string
  /** Ends the connections that are left and drops it. */
  drop(): Promise<void>
}

/** What a work is given. Everything it creates through this is stopped at the end of the run, even of an interrupted one. */
export interface Bench {
  readonly rounds: number
  readonly peers: readonly Peer[]
  /** Undefined if no Redis is available. */
  readonly redisUrl: string | undefined
  /** Aborts if the run ends early: its time is up, or the user pressed Ctrl-C. */
  readonly signal: AbortSignal

  /**
   * Round 1 of every part, then round 2 of every part, and so on; keeps what each gave. A part that fails is recorded with
   * the reason and left out of the later rounds; the others go on. `isMigrated` is whether the database of each ground has
   * Carillon's schema; a part whose ground is made elsewhere says 'none', and gets no database.
   */
  interleave(parts: readonly Part[], ground: { isMigrated: boolean } | 'none'): Promise<void>
  /** A database of its own, for what several parts share. With Carillon's schema and this month's partitions if migrated. */
  createDatabase(p: { isMigrated: boolean }): Promise<BenchDatabase>
  /** Made once in a run and kept to its end, for what several works share: a million schedules take minutes to load. */
  shared<Thing extends AsyncDisposable>(key: string, make: () => Promise<Thing>): Promise<Thing>
  /** Shows on the progress line what is being done now. */
  note(text: string): void
  /** Keeps a plan for the page of results. */
  plan(plan: Plan): void
}
