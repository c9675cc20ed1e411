import type { Clock } from '../src/kernel/clock.ts'

/** The clock of one of several processes that share the test's time. While it is stopped, as by SIGSTOP, no timer of it fires. */
export class ProcessClock implements Clock {
  readonly #time: Clock
  #isStopped = false
  #missed: (() => void)[] = []

  constructor(time: Clock) {
    this.#time = time
  }

  stop(): void {
    this.#isStopped = true
  }

  /** Continues, as by SIGCONT: the timers that came due meanwhile fire now. */
  cont(): void {
    this.#isStopped = false
    const missed = this.#missed
    this.#missed = []
    for (const callback of missed) callback()
  }

  databaseNow(): Date | null {
    return this.#time.databaseNow()
  }

  monotonicMs(): number {
    return this.#time.monotonicMs()
  }

  batchDelay(): Promise<void> {
    return this.#time.batchDelay()
  }

  sleep(ms: number, signal?: AbortSignal): Promise<void> {
    return this.#time.sleep(ms, signal)
  }

  after(ms: number, callback: () => void): () => void {
    return this.#time.after(ms, () => {
      if (this.#isStopped) this.#missed.push(callback)
      else callback()
    })
  }
}
