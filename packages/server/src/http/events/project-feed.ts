import { pauseAfter, type Caller, type Clock, type FailureRecord, type Feed, type FeedEntry } from '@carillon/core'

import { wallNow } from '../wall-clock.ts'
import { toFeedEvent } from '../wire/feed-event.ts'
import { eventText, resetText } from './event-text.ts'
import type { FeedText, Follower } from './follower.ts'

export const POLL_MS = 250
const PAGE = 200
/** How often a failure that lasts is reported. Each project that is followed has a poller, and all fail while Postgres is away. */
const REPORT_EVERY_MS = 30_000

interface ProjectFeedDeps {
  readonly feed: Feed
  readonly clock: Clock
  readonly caller: Caller
  readonly failures: Pick<FailureRecord, 'failed' | 'succeeded'> | undefined
}

/** Reads the feed of one project for all who follow it, for as long as it is open. */
export class ProjectFeed {
  readonly #deps: ProjectFeedDeps
  readonly #followers = new Set<Follower>()
  readonly #closed = new AbortController()
  #start: Promise<void> | undefined
  #cursor = ''
  #waiters: (() => void)[] = []
  /** How many polls failed in a row. */
  #failed = 0
  #reportedAtMs = -Infinity

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
      await this.#deps.clock.sleep(pauseAfter(Math.max(1, this.#failed), { firstMs: POLL_MS }), signal)
      if (!signal.aborted) await this.#poll()
    }
  }

  async #poll(): Promise<void> {
    const waiters = this.#waiters.splice(0)
    try {
      while ((await this.#readPage()) > 0);
      this.#noteSuccess()
    } catch (error) {
      // Mostly the database is away. Whoever follows stays; what happens meanwhile is read when it is back.
      this.#waiters.unshift(...waiters)
      this.#noteFailure(error)
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

  #noteFailure(error: unknown): void {
    const nowMs = this.#deps.clock.monotonicMs()
    this.#failed += 1
    if (nowMs - this.#reportedAtMs < REPORT_EVERY_MS) return
    this.#reportedAtMs = nowMs
    this.#deps.failures?.failed(error)
  }

  #noteSuccess(): void {
    if (this.#failed === 0) return
    this.#failed = 0
    this.#reportedAtMs = -Infinity
    this.#deps.failures?.succeeded()
  }

  #giveAll(change: FeedText): void {
    for (const follower of this.#followers) follower.give(change)
  }
}

export function toFeedText(entry: FeedEntry, now: number): FeedText {
  return { cursor: entry.cursor, text: eventText(toFeedEvent(entry, now)) }
}
