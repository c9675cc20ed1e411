import { CarillonError, type Caller, type Clock, type Feed, type FeedPage } from '@carillon/core'

import { wallNow } from '../wall-clock.ts'
import { openingText, resetText } from './event-text.ts'
import type { Follower } from './follower.ts'
import { POLL_MS, toFeedText, type ProjectFeed } from './project-feed.ts'

interface CatchUpDeps {
  readonly feed: Feed
  readonly clock: Clock
  readonly caller: Caller
  readonly project: ProjectFeed
  readonly follower: Follower
}

const PAGE = 200

/**
 * Brings a follower from where it left off to where its project's poller is, and hands it over: nothing is left out, and
 * nothing sent twice.
 *
 * It reads by itself until it finds nothing more, then waits for the poller to get at least as far. From then on the poller
 * gives it what it finds, which is held, while it reads once more what lies between. That may overlap with what is held,
 * so what it reads then is remembered by its cursor.
 */
export class CatchUp {
  readonly #deps: CatchUpDeps

  constructor(deps: CatchUpDeps) {
    this.#deps = deps
  }

  /** Resolves once the stream can begin; the rest goes on by itself. */
  async begin(lastEventId: string): Promise<void> {
    const { feed, caller, project, follower } = this.#deps
    const first = await feed.read(caller, lastEventId, { limit: PAGE })
    await project.start()
    follower.send(openingText(lastEventId))
    void this.#follow(first).catch((error: unknown) => follower.fail(error))
  }

  async #follow(first: FeedPage): Promise<void> {
    const { project, follower } = this.#deps
    const cursor = await this.#sendFrom(first)
    await project.nextPoll()
    if (follower.isOver) return
    follower.hold()
    project.add(follower)
    const seen = new Set<string>()
    await this.#sendFrom(await this.#read(cursor), seen)
    follower.release(seen)
    await project.nextPoll()
    follower.forget()
  }

  /** Sends a page and all that follow, no faster than the client reads; returns where it found nothing more. */
  async #sendFrom(first: FeedPage, seen?: Set<string>): Promise<string> {
    const { clock, follower } = this.#deps
    let page = first
    if (page.isExpired) follower.tell(resetText(page.cursor))
    while (page.entries.length > 0 && !follower.isOver) {
      const now = wallNow(clock)
      for (const { cursor, text } of page.entries.map((entry) => toFeedText(entry, now))) {
        follower.tell(text)
        seen?.add(cursor)
      }
      await follower.whenDrained()
      page = await this.#read(page.cursor)
      if (page.isExpired) follower.tell(resetText(page.cursor))
    }
    return page.cursor
  }

  /** As often as it takes: the client stays while the database is away. */
  async #read(cursor: string): Promise<FeedPage> {
    const { feed, clock, caller, follower } = this.#deps
    for (;;) {
      try {
        return await feed.read(caller, cursor, { limit: PAGE })
      } catch (error) {
        if (error instanceof CarillonError || follower.isOver) return { entries: [], cursor, isExpired: false }
        await clock.sleep(POLL_MS, follower.signal)
      }
    }
  }
}
