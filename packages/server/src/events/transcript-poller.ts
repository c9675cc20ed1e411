import { CarillonError, isAfterLine, pauseAfter, type Caller, type Clock } from '@carillon/core'

import type { Follower } from './follower.ts'
import type { ReadTranscript } from './transcript-messages.ts'

interface TranscriptPollerDeps {
  readonly read: ReadTranscript
  readonly clock: Clock
  readonly caller: Caller
  readonly runId: string
  /** Called with the first of several failures in a row. */
  readonly onFailure: (error: unknown) => void
}

/** How often the transcript of a run is read, however many clients follow it. */
export const POLL_MS = 500

/** Polls the transcript of one run for all clients that follow it, until the run is over or it is closed. */
export class TranscriptPoller {
  readonly #deps: TranscriptPollerDeps
  /** The followers, each with the line up to which it was sent everything when it was added. */
  readonly #followers = new Map<Follower, string | undefined>()
  readonly #closed = new AbortController()
  #isRunning = false
  /** The last line that was delivered. */
  #position: string | undefined

  constructor(deps: TranscriptPollerDeps) {
    this.#deps = deps
  }

  /**
   * Adds a follower that was sent all lines up to `position`. Lines are ordered, so it misses none and gets none twice.
   * @returns false if the poller is further, or has ended: then the follower must read on by itself
   */
  add(follower: Follower, position: string | undefined): boolean {
    if (this.#closed.signal.aborted) return false
    if (!this.#isRunning) {
      this.#position = position
      this.#isRunning = true
      void this.#run()
    } else if (this.#position !== undefined && isAfterLine(this.#position, position)) {
      return false
    }
    this.#followers.set(follower, position)
    return true
  }

  remove(follower: Follower): void {
    this.#followers.delete(follower)
  }

  close(): void {
    this.#closed.abort()
  }

  /** Never rejects: nothing awaits this loop, and if it ended, every follower would wait forever. */
  async #run(): Promise<void> {
    const { clock, onFailure } = this.#deps
    const { signal } = this.#closed
    for (let failures = 0; !signal.aborted;) {
      await clock.sleep(pauseAfter(Math.max(1, failures), { firstMs: POLL_MS }), signal)
      try {
        while (!signal.aborted && (await this.#readPage()));
        failures = 0
      } catch (error) {
        // Usually the database is unreachable. Followers stay connected, and a later poll reads what was recorded meanwhile.
        if (error instanceof CarillonError) this.#endAll()
        else if (failures++ === 0) onFailure(error)
      }
    }
  }

  /** @returns true if more lines are stored already */
  async #readPage(): Promise<boolean> {
    const { read, caller, runId } = this.#deps
    const { lines, isMore, end } = await read(caller, runId, this.#position)
    this.#position = lines.at(-1)?.id ?? this.#position
    for (const [follower, position] of this.#followers) {
      for (const { id, text } of lines) if (isAfterLine(id, position)) follower.sendEvent(text)
    }
    if (end !== undefined) {
      this.close()
      for (const follower of this.#followers.keys()) void follower.endWith(end)
    }
    return isMore
  }

  /** The run is gone: its project was purged, or its month was dropped. */
  #endAll(): void {
    this.close()
    for (const follower of this.#followers.keys()) follower.end()
  }
}
