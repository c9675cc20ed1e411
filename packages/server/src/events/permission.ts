import type { Clock } from '@carillon/core'

interface StreamPermissionDeps {
  readonly clock: Clock
  readonly isStillAllowed: () => Promise<boolean>
}

/** How long events may be sent after a check, and how long to wait before a check that gave no answer is repeated. */
const VALID_MS = 2000

/**
 * Checks whether a client may still follow events: while the stream is open, its key may be revoked or its subject removed from
 * the project. Created right after a check that allowed it.
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

  /** Checks again. Concurrent callers share one check. Undefined if it gave no answer, such as without a database. */
  check(): Promise<boolean | undefined> {
    this.#checking ??= this.#runCheck()
    return this.#checking
  }

  /** Repeats the check until it gives an answer. Returns false if the signal fires first. */
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
