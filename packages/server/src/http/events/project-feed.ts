import type { Caller, Clock, Feed, FeedEntry } from '@carillon/core'
import type { Logger } from 'pino'

import { wallNow } from '../wall-clock.ts'
import { toFeedEvent } from '../wire/feed-event.ts'
import { eventText, resetText } from './event-text.ts'
import type { FeedText, Follower } from './follower.ts'

export const POLL_MS = 250
const PAGE = 200

interface ProjectFeedDeps {
  readonly feed: Feed
  readonly clock: Clock
  readonly caller: Caller
  readonly logger: Pick<Logger, 'warn'>
}

/** Reads the feed of one project for all who follow it, for as long as it is open. */
export class ProjectFeed {
  readonly #deps: ProjectFeedDeps
  readonly #followers = new Set<Follower>()
  readonly #closed = new AbortController()
  #start: Promise<void> | undefined
  #cursor = ''
  #waiters: (() => void)[] = []
  /** Whether the last poll failed. */
  #isFailing = false

  constructor(deps: ProjectFeedDeps) {
    this.#deps = deps
  }

  /** Where the poller is, once it has started: whoever is added now gets all that comes behind. */
  get cursor(): string {
    return this.#cursor
  }

  /** Begins at the end of the feed, once. If it cannot be asked for, whoever comes next tries again. */
  async start(): Promise<void> {
    this.#start ??= this.#begin()
    await this.#start
  }

  async #begin(): Promise<void> {
    try {
      this.#cursor = await this.#deps.feed.tail()
    } catch (error) {
      this.#start = undefined
      throw error
    }
    void this.#run()
  }

  add(follower: Follower): void {
    this.#followers.add(follower)
  }

  remove(follower: Follower): void {
    this.#followers.delete(follower)
  }

  close(): void {
    this.#closed.abort()
    for (const resolve of this.#waiters.splice(0)) resolve()
  }

  /** Resolves after a poll that began after this call, and found all there was. */
  async nextPoll(): Promise<void> {
    if (this.#closed.signal.aborted) return
    await new Promise<void>((resolve) => this.#waiters.push(resolve))
  }

  /** Never rejects, whatever a poll meets: nobody waits for it, and without it every follower would wait for ever. */
  async #run(): Promise<void> {
    const { signal } = this.#closed
    while (!signal.aborted) {
      await this.#deps.clock.sleep(POLL_MS, signal)
      if (!signal.aborted) await this.#poll()
    }
  }

  async #poll(): Promise<void> {
    const waiters = this.#waiters.splice(0)
    try {
      while ((await this.#readPage()) > 0);
      this.#isFailing = false
    } catch (error) {
      // Mostly the database is away. Whoever follows stays; what happens meanwhile is read when it is back.
      this.#waiters.unshift(...waiters)
      this.#tellOnce(error)
      return
    }
    for (const resolve of waiters) resolve()
  }

  async #readPage(): Promise<number> {
    const { feed, clock, caller } = this.#deps
    const { entries, cursor, isExpired } = await feed.read(caller, this.#cursor, { limit: PAGE })
    const now = wallNow(clock)
    // All of it before the first is given, so that a page which fails is read again as a whole.
    const changes = entries.map((entry) => toFeedText(entry, now))
    this.#cursor = cursor
    if (isExpired) this.#giveAll({ cursor, text: resetText(cursor) })
    for (const change of changes) this.#giveAll(change)
    return entries.length
  }

  /** Of polls that fail one after the other only the first: they come four times a second. */
  #tellOnce(error: unknown): void {
    if (this.#isFailing) return
    this.#isFailing = true
    this.#deps.logger.warn({ event: 'feed.not_read', error }, 'the feed of a project was not read')
  }

  #giveAll(change: FeedText): void {
    for (const follower of this.#followers) follower.give(change)
  }
}

export function toFeedText(entry: FeedEntry, now: number): FeedText {
  return { cursor: entry.cursor, text: eventText(toFeedEvent(entry, now)) }
}
