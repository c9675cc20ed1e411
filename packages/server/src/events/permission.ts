import type { Clock } from '@carillon/core'

interface StreamPermissionDeps {
  readonly clock: Clock
  readonly isStillAllowed: () => Promise<boolean>
}

/** How long events may be sent after a check, and how long to wait before a failed check is repeated. */
const VALID_MS = 2000

/**
 * Whether a client may still follow events: its key may be revoked, or its subject removed, while the stream is open. Created
 * right after a successful check.
 */
export class StreamPermission {
  readonly #deps: StreamPermissionDeps
  #checkedAt: number
  #checking: Promise<boolean | undefined> | undefined

  constructor(deps: StreamPermissionDeps) {
    this.#deps = deps
    this.#checkedAt = deps.clock.monotonicMs()
  }

  /** True while the last check is recent enough to send events. */
  get isFresh(): boolean {
    return this.#deps.clock.monotonicMs() - this.#checkedAt <= VALID_MS
  }

  /** Checks again. Concurrent callers share one check. Undefined if the check failed, for instance without a database. */
  check(): Promise<boolean | undefined> {
    this.#checking ??= this.#runCheck()
    return this.#checking
  }

  /** Repeats the check until it gives an answer. Also false once the signal fires. */
  async checkUntilAnswered(signal: AbortSignal): Promise<boolean> {
    while (!signal.aborted) {
      const isAllowed = await this.check()
      if (isAllowed !== undefined) return isAllowed
      await this.#deps.clock.sleep(VALID_MS, signal)
    }
    return false
  }

  async #runCheck(): Promise<boolean | undefined> {
    // The answer is as old as the start of the check: the key may be revoked while the answer is on its way.
    const checkedAt = this.#deps.clock.monotonicMs()
    try {
      const isAllowed = await this.#deps.isStillAllowed()
      this.#checkedAt = checkedAt
      return isAllowed
    } catch {
      return undefined
    } finally {
      this.#checking = undefined
    }
  }
}
