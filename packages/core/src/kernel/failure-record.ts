import { messageOf } from '@carillon/api'

import type { Clock } from './clock.ts'
import type { Events } from './events.ts'

/** A service, or a part of one, that fails at the moment. */
export interface ServiceFailure {
  /** How many times in a row. */
  readonly failures: number
  /** How long ago the first of them was, in milliseconds. */
  readonly forMs: number
  /** The message of the last error. */
  readonly error: string
}

/** The services and parts of a worker that fail at the moment, by name. */
export type FailingServices = Readonly<Record<string, ServiceFailure>>

/** Something in a worker that can fail. `doctor` and the metrics report it by its name. */
export interface MonitoredPart {
  readonly name: string
  /** Undefined while it works. */
  readonly failure: ServiceFailure | undefined
}

/** How long a part that fails waits before it tries again: twice as long after each further failure in a row. */
export interface FailurePause {
  readonly firstMs: number
  /** @default 5 seconds, so that the part is back soon once the cause is gone */
  readonly maxMs?: number
}

export interface FailureRecordDeps {
  readonly clock: Pick<Clock, 'monotonicMs'>
  readonly events: Events
}

/** For a part that works only when it is asked to: a failure that does not recur for this long is over. */
export const FORGET_AFTER_MS = 60_000
const PAUSE_MAX_MS = 5000

/**
 * How long to wait before the next try, in milliseconds.
 * @param failures how many in a row by now, 1 for the first
 */
export function pauseAfter(failures: number, { firstMs, maxMs = PAUSE_MAX_MS }: FailurePause): number {
  return Math.min(firstMs * 2 ** (failures - 1), maxMs)
}

/** Emits each failure of a part as `service.failed`, and remembers the failures since the part last succeeded. */
export class FailureRecord implements MonitoredPart {
  readonly #deps: FailureRecordDeps
  readonly #part: { readonly name: string }
  readonly #forgetAfterMs: number
  #row:
    | { readonly failures: number; readonly sinceMs: number; readonly lastMs: number; readonly error: string }
    | undefined

  constructor(deps: FailureRecordDeps, part: { readonly name: string }, forgetAfterMs = Infinity) {
    this.#deps = deps
    this.#part = part
    this.#forgetAfterMs = forgetAfterMs
  }

  get name(): string {
    return this.#part.name
  }

  get failure(): ServiceFailure | undefined {
    const row = this.#current
    if (row === undefined) return undefined
    const { failures, sinceMs, error } = row
    return { failures, forMs: Math.round(this.#deps.clock.monotonicMs() - sinceMs), error }
  }

  /** @returns how many consecutive failures there are by now */
  failed(error: unknown): number {
    this.#deps.events.emit('service.failed', { service: this.name, error })
    const lastMs = this.#deps.clock.monotonicMs()
    const { failures = 0, sinceMs = lastMs } = this.#current ?? {}
    this.#row = {
      failures: failures + 1,
      sinceMs,
      lastMs,
      error: messageOf(error),
    }
    return failures + 1
  }

  succeeded(): void {
    this.#row = undefined
  }

  /** Handles the rejection of a promise that no code awaits. Without a handler a rejection ends the process. */
  reportRejection(work: Promise<unknown>): void {
    work.catch((error: unknown) => this.failed(error))
  }

  get #current() {
    const row = this.#row
    return row !== undefined && this.#deps.clock.monotonicMs() - row.lastMs < this.#forgetAfterMs ? row : undefined
  }
}
