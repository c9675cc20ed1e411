import { pauseAfter, type Caller, type Clock, type FailureRecord, type EventLog } from '@carillon/core'

import type { Follower } from './follower.ts'
import { resetText, type EventMessage, type RenderEntries } from './messages.ts'

export const POLL_MS = 250
const PAGE = 200
/**
 * While its polls keep failing, a poller reports the failure at most once in this time. While Postgres is down, the pollers of all
 * followed projects fail at every poll and would otherwise flood the log.
 */
const REPORT_EVERY_MS = 30_000

interface ProjectPollerDeps {
  readonly eventLog: EventLog
  readonly clock: Clock
  readonly caller: Caller
  readonly render: RenderEntries
  readonly failures: Pick<FailureRecord, 'failed' | 'succeeded'> | undefined
}

/** Polls the event log of one project for all clients that follow it, until it is closed. */
export class ProjectPoller {
  readonly #deps: ProjectPollerDeps
  readonly #followers = new Set<Follower>()
  readonly #closed = new AbortController()
  #start: Promise<void> | undefined
  #cursor = ''
  #waiters: (() => void)[] = []
  /** How many polls have failed in a row. */
  #failed = 0
  #reportedAtMs = -Infinity

  constructor(deps: ProjectPollerDeps) {
    this.#deps = deps
  }

  /** The position of the poller, once it has started. A follower that is added now gets every event after it. */
  get cursor(): string {
    return this.#cursor
  }

  /** Starts once, at the end of the event log. After a failure the next caller tries again. */
  async start(): Promise<void> {
    this.#start ??= this.#begin()
    await this.#start
  }

  async #begin(): Promise<void> {
    try {
      this.#cursor = await this.#deps.eventLog.tail()
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

  /** Resolves after a successful poll that began after this call, or when the poller closes. */
  async nextPoll(): Promise<void> {
    if (this.#closed.signal.aborted) return
    await new Promise<void>((resolve) => this.#waiters.push(resolve))
  }

  /** Never rejects: nothing awaits this loop, and if it ended, every follower would wait forever. */
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
      // Usually the database is unreachable. Followers stay connected, and a later poll reads what happened meanwhile.
      this.#waiters.unshift(...waiters)
      this.#noteFailure(error)
      return
    }
    for (const resolve of waiters) resolve()
  }

  async #readPage(): Promise<number> {
    const { eventLog, caller, render } = this.#deps
    const { entries, cursor, isExpired } = await eventLog.read(caller, this.#cursor, { limit: PAGE })
    // The whole page is rendered before its first event is delivered. So a page that cannot be rendered is read again as a whole.
    const messages = render(entries)
    this.#cursor = cursor
    if (isExpired) this.#deliver({ cursor, text: resetText(cursor) })
    for (const message of messages) this.#deliver(message)
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

  #deliver(message: EventMessage): void {
    for (const follower of this.#followers) follower.deliver(message)
  }
}
