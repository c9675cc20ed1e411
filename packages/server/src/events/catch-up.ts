import { CarillonError, type Caller, type Clock, type EventLog, type EventLogPage } from '@carillon/core'

import type { Follower } from './follower.ts'
import { openingText, resetText, type RenderEntries } from './messages.ts'
import { POLL_MS, type ProjectPoller } from './project-poller.ts'

interface CatchUpDeps {
  readonly eventLog: EventLog
  readonly clock: Clock
  readonly caller: Caller
  readonly render: RenderEntries
  readonly project: ProjectPoller
  readonly follower: Follower
}

const PAGE = 200

/**
 * Sends a follower the events from its last one up to the position of its project's poller, then hands it over to the poller.
 * No event is left out, and none is sent twice.
 *
 * 1. It reads the event log itself until it finds nothing more, and waits until the poller is at least as far.
 * 2. It adds the follower to the poller, holds the poller's deliveries back, and reads once more to fill the gap between the two.
 * 3. That last read may find events that the poller delivers too. Their cursors are remembered, and such deliveries are skipped.
 */
export class CatchUp {
  readonly #deps: CatchUpDeps

  constructor(deps: CatchUpDeps) {
    this.#deps = deps
  }

  /** Resolves once the stream can begin. The rest continues in the background. */
  async begin(lastEventId: string): Promise<void> {
    const { eventLog, caller, project, follower } = this.#deps
    const first = await eventLog.read(caller, lastEventId, { limit: PAGE })
    await project.start()
    follower.sendUnchecked(openingText(lastEventId))
    void this.#run(first).catch((error: unknown) => follower.fail(error))
  }

  async #run(first: EventLogPage): Promise<void> {
    const { project, follower } = this.#deps
    const cursor = await this.#sendFrom(first)
    await project.nextPoll()
    if (follower.isOver) return
    follower.holdDeliveries()
    project.add(follower)
    const seen = new Set<string>()
    await this.#sendFrom(await this.#read(cursor), seen)
    follower.releaseDeliveries(seen)
    await project.nextPoll()
    follower.finishCatchUp()
  }

  /** Sends a page and all that follow, no faster than the client reads. Returns the cursor after the last page. */
  async #sendFrom(first: EventLogPage, seen?: Set<string>): Promise<string> {
    const { follower, render } = this.#deps
    let page = first
    if (page.isExpired) follower.sendEvent(resetText(page.cursor))
    while (page.entries.length > 0 && !follower.isOver) {
      for (const { cursor, text } of render(page.entries)) {
        follower.sendEvent(text)
        seen?.add(cursor)
      }
      await follower.whenDrained()
      page = await this.#read(page.cursor)
      if (page.isExpired) follower.sendEvent(resetText(page.cursor))
    }
    return page.cursor
  }

  /** Retries while the database is unreachable: the client stays connected meanwhile. */
  async #read(cursor: string): Promise<EventLogPage> {
    const { eventLog, clock, caller, follower } = this.#deps
    for (;;) {
      try {
        return await eventLog.read(caller, cursor, { limit: PAGE })
      } catch (error) {
        if (error instanceof CarillonError || follower.isOver) return { entries: [], cursor, isExpired: false }
        await clock.sleep(POLL_MS, follower.signal)
      }
    }
  }
}
