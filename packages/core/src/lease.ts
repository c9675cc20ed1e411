import type { Clock } from './clock.ts'

/**
 * The right of this process to hold runs: one row in `workers`, extended by heartbeats. While it is not held, nothing is
 * claimed, for what would be claimed were nobody's.
 *
 * Trusted from before the request that extended it was sent, so that a slow answer never stretches it, and a second less
 * than the others grant it, so that its holder always lets go first.
 */
export class Lease {
  readonly #clock: Clock
  readonly #lost = new Set<() => void>()
  #workerId: string | undefined
  #trustedUntilMs = -Infinity

  constructor(clock: Clock) {
    this.#clock = clock
  }

  /** Who holds runs in the name of this process; undefined while nobody may. */
  get workerId(): string | undefined {
    return this.#clock.monotonicMs() < this.#trustedUntilMs ? this.#workerId : undefined
  }

  /** The last id it was held under, held or not. */
  get lastWorkerId(): string | undefined {
    return this.#workerId
  }

  /** Notes an extension that was asked for at `askedAtMs` of the monotonic clock. */
  grant(workerId: string, askedAtMs: number, leaseMs: number): void {
    this.#workerId = workerId
    this.#trustedUntilMs = askedAtMs + leaseMs - Math.min(1000, leaseMs / 10)
  }

  /** Lets go: whoever acts in its name must stop. */
  lose(): void {
    this.#workerId = undefined
    this.#trustedUntilMs = -Infinity
    for (const listener of this.#lost) listener()
  }

  onLost(listener: () => void): void {
    this.#lost.add(listener)
  }
}
