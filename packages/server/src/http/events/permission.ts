import type { Clock } from '@carillon/core'

interface PermissionDeps {
  readonly clock: Clock
  readonly isStillAllowed: () => Promise<boolean>
}

/** How old an answer may be for events to be sent on its word, and how long to wait before a failed question is put again. */
const GOOD_FOR_MS = 2000

/** Whether whoever follows events may still do so. Made when that was just found to be so. */
export class Permission {
  readonly #deps: PermissionDeps
  #askedAt: number
  #question: Promise<boolean | undefined> | undefined

  constructor(deps: PermissionDeps) {
    this.#deps = deps
    this.#askedAt = deps.clock.monotonicMs()
  }

  /** Whether the last answer still counts. */
  get isFresh(): boolean {
    return this.#deps.clock.monotonicMs() - this.#askedAt <= GOOD_FOR_MS
  }

  /** One question at a time, however many wait for its answer; undefined if nobody could be asked. */
  ask(): Promise<boolean | undefined> {
    this.#question ??= this.#put()
    return this.#question
  }

  /** Asks until there is an answer. False as well if the signal fires. */
  async settled(signal: AbortSignal): Promise<boolean> {
    while (!signal.aborted) {
      const isAllowed = await this.ask()
      if (isAllowed !== undefined) return isAllowed
      await this.#deps.clock.sleep(GOOD_FOR_MS, signal)
    }
    return false
  }

  async #put(): Promise<boolean | undefined> {
    // The answer is as old as its question: a key may be revoked while the answer is on its way.
    const askedAt = this.#deps.clock.monotonicMs()
    try {
      const isAllowed = await this.#deps.isStillAllowed()
      this.#askedAt = askedAt
      return isAllowed
    } catch {
      return undefined
    } finally {
      this.#question = undefined
    }
  }
}
