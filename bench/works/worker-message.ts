/** What a worker in a process of its own tells. Its first one says that it is up. */
export interface WorkerMessage {
  /** So many so far. */
  readonly settled: number
  /** When its target was called for the first time; null until then. */
  readonly firstAt: number | null
  readonly at: number
  readonly failure: string | null
}
