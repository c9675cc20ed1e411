import type { Clock } from './clock.ts'

type LostListener = (workerId: string) => void

/**
 * The permission of this process to hold runs: one row in `workers`, extended by heartbeats. Without a lease the worker claims
 * nothing. When the lease expires, its listeners stop all runs, even if the database cannot be reached.
 *
 * The lease counts from before the heartbeat was sent, so a slow answer does not extend it. It ends up to a second before other
 * workers consider it expired, so this worker always stops first.
 */
export class Lease {
  readonly #clock: Clock
  readonly #lost = new Set<LostListener>()
  #workerId: string | undefined
  #trustedUntilMs = -Infinity
  #stopTimer: () => void = doNothing

  constructor(clock: Clock) {
    this.#clock = clock
  }

  /** The id under which this process holds runs; undefined without a lease. */
  get workerId(): string | undefined {
    return this.#clock.monotonicMs() < this.#trustedUntilMs ? this.#workerId : undefined
  }

  /** Records an extension. `askedAtMs` is when the heartbeat was sent, by the monotonic clock. */
  grant(workerId: string, askedAtMs: number, leaseMs: number): void {
    this.#stopTimer()
    this.#workerId = workerId
    this.#trustedUntilMs = askedAtMs + leaseMs - Math.min(1000, leaseMs / 10)
    // A lost lease is not resumed. Its row must expire, so that another worker finds and rescues the runs.
    this.#stopTimer = this.#clock.after(this.#trustedUntilMs - this.#clock.monotonicMs(), () => this.lose())
  }

  /** Gives up the lease and calls the listeners. */
  lose(): void {
    const workerId = this.#workerId
    this.release()
    if (workerId === undefined) return
    for (const listener of this.#lost) listener(workerId)
  }

  /** Gives up the lease without calling the listeners: no run depends on it. */
  release(): void {
    this.#stopTimer()
    this.#stopTimer = doNothing
    this.#workerId = undefined
    this.#trustedUntilMs = -Infinity
  }

  onLost(listener: LostListener): void {
    this.#lost.add(listener)
  }
}

function doNothing(): void {
  // No timer runs.
}
