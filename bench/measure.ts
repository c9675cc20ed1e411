/** What a measurement runs on: its own database, and an empty Redis. */
export interface Ground {
  /** A database that nothing else uses, dropped after the measurement. It has no schema unless the work asks for one. */
  readonly postgresUrl: string
  /** Undefined if no Redis is available. */
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

/** Another scheduler or queue, measured on the same work. */
export interface Peer {
  readonly name: string
  readonly version: string
  /** What a slot leaves behind: the writes that its figure includes. */
  readonly leaves: string
  /** How it was set up, where that matters to the figure. */
  readonly setUp: string
  /** The maximum of rounds, if no goal depends on it and a round takes minutes. Absent: all. */
  readonly rounds?: number
  /** All due at one instant, with the worker up and waiting for it. Rejects with `OutOfPatience` if it takes too long. */
  readonly drain?: (ground: Ground, work: { count: number; patienceMs: number }) => Promise<Drain>
  /** Slots that come due one by one. A peer with a coarser grid than `spacingMs` has its slots where its grid allows. */
  readonly lateness?: (ground: Ground, work: { slots: number; spacingMs: number }) => Promise<Lateness>
  /** Schedules that are due every day, made one by one. */
  readonly create?: (ground: Ground, work: { count: number; clients: number }) => Promise<Creation>
}

/** Thrown if a measurement exceeds its time limit. */
export class OutOfPatience extends Error {
  override readonly name = 'OutOfPatience'
}
