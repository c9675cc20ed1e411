import type { Clock } from './clock.ts'
import type { Events } from './events.ts'

/** What every service is built on. */
export interface ServiceDeps {
  readonly clock: Clock
  readonly events: Events
}

/** A service that fails at the moment. */
export interface ServiceFailure {
  /** How many times in a row. */
  readonly failures: number
  /** For how long by now. */
  readonly forMs: number
  /** What it said the last time. */
  readonly error: string
}

/** How long a service that goes on failing pauses at most, so that it is back soon once its cause is gone. */
const PAUSE_MAX_MS = 5000

/**
 * The shape of everything that runs in the background: `runOnce` does the work once and counts it, `start` does it again
 * and again, `stop` waits for the one under way. All are safe to call twice, and `stop` without a `start`.
 *
 * I13: no error ends a service. What `runOnce` throws is told as `service.failed`, and the work is tried again after
 * `pauseAfterFailureMs`, twice as long after each further failure up to five seconds. Meanwhile `failure` says so.
 */
export abstract class Service<Counts> {
  abstract readonly name: string
  readonly #deps: ServiceDeps
  readonly #pauseAfterFailureMs: number
  #failure: { readonly failures: number; readonly sinceMs: number; readonly error: string } | undefined
  #stopping: AbortController | undefined
  #loop: Promise<void> = Promise.resolve()

  protected constructor(deps: ServiceDeps, pauseAfterFailureMs: number) {
    this.#deps = deps
    this.#pauseAfterFailureMs = pauseAfterFailureMs
  }

  abstract runOnce(): Promise<Counts>

  /** How long to wait before the next time, given what this time came to. Must end early when the signal fires. */
  protected abstract rest(counts: Counts, signal: AbortSignal): Promise<void>

  /** Undefined if the last time went well. */
  get failure(): ServiceFailure | undefined {
    if (this.#failure === undefined) return undefined
    const { failures, sinceMs, error } = this.#failure
    return { failures, error, forMs: Math.round(this.#deps.clock.monotonicMs() - sinceMs) }
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
    // Unless it was started again meanwhile.
    if (this.#stopping === stopping) this.#stopping = undefined
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop()
  }

  async #run(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      try {
        const counts = await this.runOnce()
        this.#failure = undefined
        await this.rest(counts, signal)
      } catch (error) {
        this.#deps.events.emit('service.failed', { service: this.name, error })
        await this.#deps.clock.sleep(this.#noteFailure(error), signal)
      }
    }
  }

  /** @returns for how long to pause */
  #noteFailure(error: unknown): number {
    const { failures = 0, sinceMs = this.#deps.clock.monotonicMs() } = this.#failure ?? {}
    const message = error instanceof Error ? error.message : String(error)
    this.#failure = { failures: failures + 1, sinceMs, error: message }
    const pauseMs = this.#pauseAfterFailureMs
    return Math.max(pauseMs, Math.min(pauseMs * 2 ** failures, PAUSE_MAX_MS))
  }
}

/**
 * Owns a promise that nobody waits for: what it is rejected with is told as `service.failed`. Without an owner a rejection ends
 * the process.
 */
export function own({ events }: Pick<ServiceDeps, 'events'>, service: string, work: Promise<unknown>): void {
  work.catch((error: unknown) => events.emit('service.failed', { service, error }))
}

/** A service that works at a steady pace. */
export abstract class PeriodicService<Counts> extends Service<Counts> {
  readonly #clock: Clock
  readonly #periodMs: number

  protected constructor(deps: ServiceDeps, periodMs: number, pauseAfterFailureMs = periodMs) {
    super(deps, pauseAfterFailureMs)
    this.#clock = deps.clock
    this.#periodMs = periodMs
  }

  protected override rest(_counts: Counts, signal: AbortSignal): Promise<void> {
    return this.#clock.sleep(this.#periodMs, signal)
  }
}
