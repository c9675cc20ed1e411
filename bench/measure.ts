/** The resources of a measurement: a database of its own, and an empty Redis. */
export interface Ground {
  /** A database that nothing else uses, dropped after the measurement. It has no schema unless the work asks for one. */
  readonly postgresUrl: string
  /** Undefined if no Redis is available. */
  readonly redisUrl: string | undefined
}

/** `count` slots that came due at one instant. */
export interface Drain {
  readonly count: number
  /** From their instant to the end of the last one, as the measured system records it. */
  readonly seconds: number
  /** From their instant to the first call. */
  readonly firstMs: number
}

/** One number for each slot: milliseconds from its nominal instant to the call of its target. */
export type Lateness = readonly number[]

/** Schedules that are created one by one. Several clients do so at the same time. */
export interface Creation {
  readonly count: number
  readonly seconds: number
}

/** Another scheduler or queue, measured on the same work. */
export interface Peer {
  readonly name: string
  readonly version: string
  /** What a slot leaves behind, and so which writes its figure includes. */
  readonly leaves: string
  /** How the peer was configured, if that affects the figure. */
  readonly setUp: string
  /** The maximum of rounds, for a peer that no goal depends on and whose rounds take minutes. Undefined: all rounds. */
  readonly rounds?: number
  /** Slots that are due at one instant, while the worker runs and waits for it. Rejects with `OutOfPatience` if it takes too long. */
  readonly drain?: (ground: Ground, work: { count: number; patienceMs: number }) => Promise<Drain>
  /** Slots that come due one by one. A peer with a coarser resolution than `spacingMs` has its slots where its resolution allows. */
  readonly lateness?: (ground: Ground, work: { slots: number; spacingMs: number }) => Promise<Lateness>
  /** Daily schedules that are created one by one. */
  readonly create?: (ground: Ground, work: { count: number; clients: number }) => Promise<Creation>
}

/** Thrown if a measurement exceeds its time limit. */
export class OutOfPatience extends Error {
  override readonly name = 'OutOfPatience'
}
