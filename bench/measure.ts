/** What a piece of work is done on: a database of its own, and a Redis emptied for it. */
export interface Ground {
  /** A database that nothing else uses, dropped after the work. Not migrated: who wants Carillon's schema asks for it. */
  readonly postgresUrl: string
  /** Undefined where no Redis could be had. */
  readonly redisUrl: string | undefined
}

/** N slots that came due at one instant. */
export interface Drain {
  readonly count: number
  /** From the instant they were due to the last one's end, as the measured system itself records it. */
  readonly seconds: number
  /** From that instant to the first call. */
  readonly firstMs: number
}

/** One number for each slot: milliseconds from its nominal instant to the call of its target. */
export type Lateness = readonly number[]

/** Single creates, one after the other by each of several clients. */
export interface Creation {
  readonly count: number
  readonly seconds: number
}

/** Something that makes things happen later, measured on the same work as all others. */
export interface Peer {
  readonly name: string
  readonly version: string
  /** What a slot leaves behind once it has run: what the figure pays for. */
  readonly leaves: string
  /** How it was set up, where that matters to the figure. */
  readonly setUp: string
  /** At most so many rounds, where no figure to reach depends on it and a round takes minutes. Absent: all. */
  readonly rounds?: number
  /** All due at one instant, with the worker up and waiting for it. Rejects with `OutOfPatience` if it takes too long. */
  readonly drain?: (ground: Ground, work: { count: number; patienceMs: number }) => Promise<Drain>
  /** Slots that come due one by one. Who keeps a coarser grid than `spacingMs` has its slots where its grid allows. */
  readonly lateness?: (ground: Ground, work: { slots: number; spacingMs: number }) => Promise<Lateness>
  /** Schedules that are due every day, made one by one. */
  readonly create?: (ground: Ground, work: { count: number; clients: number }) => Promise<Creation>
}

/** It did not come to its end in the time it was given. */
export class OutOfPatience extends Error {
  override readonly name = 'OutOfPatience'
}
