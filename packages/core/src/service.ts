import type { Clock } from './clock.ts'
import type { Events } from './events.ts'

/** What every service is built on. */
export interface ServiceDeps {
  readonly clock: Clock
  readonly events: Events
}

/**
 * The shape of everything that runs in the background: `runOnce` does the work once and counts it, `start` does it again
 * and again, `stop` waits for the one under way. All are safe to call twice, and `stop` without a `start`.
 *
 * What `runOnce` throws is told as `service.failed`, and tried again after `pauseAfterFailureMs`: no error ends a service.
 */
export abstract class Service<Counts> {
  abstract readonly name: string
  readonly #deps: ServiceDeps
  readonly #pauseAfterFailureMs: number
  #stopping: AbortController | undefined
  #loop: Promise<void> = Promise.resolve()

  protected constructor(deps: ServiceDeps, pauseAfterFailureMs: number) {
    this.#deps = deps
    this.#pauseAfterFailureMs = pauseAfterFailureMs
  }

  abstract runOnce(): Promise<Counts>

  /** How long to wait before the next time, given what this time came to. Must end early when the signal fires. */
  protected abstract rest(counts: Counts, signal: AbortSignal): Promise<void>

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
        await this.rest(await this.runOnce(), signal)
      } catch (error) {
        this.#deps.events.emit('service.failed', { service: this.name, error })
        await this.#deps.clock.sleep(this.#pauseAfterFailureMs, signal)
      }
    }
  }
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
