import type { Clock } from './clock.ts'
import type { Events } from './events.ts'
import {
  FailureRecord,
  pauseAfter,
  type FailurePause,
  type MonitoredPart,
  type ServiceFailure,
} from './failure-record.ts'

export interface ServiceDeps {
  readonly clock: Clock
  readonly events: Events
}

/**
 * Work in the background. `runOnce` does the work once and returns counts, `start` repeats it, `stop` waits for the call in progress.
 * `start` and `stop` may be called twice, and `stop` without `start`.
 *
 * I13: no error ends a service. If `runOnce` throws, the service emits `service.failed` and tries again after its pause, which
 * doubles with each further failure in a row up to the pause's `maxMs`. Until a call succeeds, `failure` describes the failure.
 */
export abstract class Service<Counts> implements MonitoredPart {
  abstract readonly name: string
  readonly #deps: ServiceDeps
  readonly #pause: FailurePause
  readonly #failures: FailureRecord
  #stopping: AbortController | undefined
  #loop: Promise<void> = Promise.resolve()

  protected constructor(deps: ServiceDeps, pause: FailurePause) {
    this.#deps = deps
    this.#pause = pause
    this.#failures = new FailureRecord(deps, this)
  }

  abstract runOnce(): Promise<Counts>

  /** Waits before the next call of `runOnce`, given the counts of this one. Must end early when the signal fires. */
  protected abstract rest(counts: Counts, signal: AbortSignal): Promise<void>

  /** The pause after a failure, in milliseconds. `failures` counts the consecutive failures. */
  protected pauseAfterFailure(failures: number): number {
    return pauseAfter(failures, this.#pause)
  }

  /** Undefined if the last call of `runOnce` succeeded. */
  get failure(): ServiceFailure | undefined {
    return this.#failures.failure
  }

  start(): void {
    if (this.#stopping !== undefined) return
    this.#stopping = new AbortController()
    this.#loop = this.#run(this.#stopping.signal)
  }

  async stop(): Promise<void> {
    const stopping = this.#stopping
    stopping?.abort()
    await this.#loop
    // `start` may have been called again meanwhile.
    if (this.#stopping === stopping) this.#stopping = undefined
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop()
  }

  async #run(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      try {
        const counts = await this.runOnce()
        this.#failures.succeeded()
        await this.rest(counts, signal)
      } catch (error) {
        const failures = this.#failures.failed(error)
        await this.#deps.clock.sleep(this.pauseAfterFailure(failures), signal)
      }
    }
  }
}

const PAUSE_FIRST_MS = 1000
/** The longest pause is at least this: a service that keeps failing pauses for longer than a short period. */
const PAUSE_LONG_MIN_MS = 5000
/** The longest pause is at most this: a service with a long period notices within a minute that the cause of its failure is gone. */
const PAUSE_LONG_MAX_MS = 60_000

/**
 * A service that works at a steady pace. Unless it names another pause, it tries again a second after a failure, or sooner if its
 * period is shorter. The pause grows to the period, but at least to 5 seconds and at most to a minute.
 */
export abstract class PeriodicService<Counts> extends Service<Counts> {
  readonly #clock: Clock
  readonly #periodMs: number

  protected constructor(deps: ServiceDeps, periodMs: number, pause: FailurePause = pauseOf(periodMs)) {
    super(deps, pause)
    this.#clock = deps.clock
    this.#periodMs = periodMs
  }

  protected override rest(_counts: Counts, signal: AbortSignal): Promise<void> {
    return this.#clock.sleep(this.#periodMs, signal)
  }
}

function pauseOf(periodMs: number): FailurePause {
  const maxMs = Math.min(Math.max(periodMs, PAUSE_LONG_MIN_MS), PAUSE_LONG_MAX_MS)
  return { firstMs: Math.min(periodMs, PAUSE_FIRST_MS), maxMs }
}
