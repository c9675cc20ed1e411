import type { Clock } from './clock.ts'

type LostListener = (workerId: string) => void

/**
 * The right of this process to hold runs: one row in `workers`, extended by heartbeats. While it is not held, nothing is
 * claimed, for what would be claimed were nobody's; and when it runs out, whoever acts in its name is told to stop, whether
 * the database can be asked or not.
 *
 * Trusted from before the request that extended it was sent, so that a slow answer never stretches it, and a second less
 * than the others grant it, so that its holder always lets go first.
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

  /** Who holds runs in the name of this process; undefined while nobody may. */
  get workerId(): string | undefined {
    return this.#clock.monotonicMs() < this.#trustedUntilMs ? this.#workerId : undefined
  }

  /** Notes an extension that was asked for at `askedAtMs` of the monotonic clock. */
  grant(workerId: string, askedAtMs: number, leaseMs: number): void {
    this.#stopTimer()
    this.#workerId = workerId
    this.#trustedUntilMs = askedAtMs + leaseMs - Math.min(1000, leaseMs / 10)
    // It is not taken up again: what was let go of is written by nobody, so the row must run out for a rescuer to find it.
    this.#stopTimer = this.#clock.after(this.#trustedUntilMs - this.#clock.monotonicMs(), () => this.lose())
  }

  /** Lets go, and tells whoever acts in its name to stop. */
  lose(): void {
    const workerId = this.#workerId
    this.release()
    if (workerId === undefined) return
    for (const listener of this.#lost) listener(workerId)
  }

  /** Lets go of what is no longer needed; nobody has to be told. */
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
