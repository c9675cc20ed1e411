import type { Readable } from 'node:stream'

import type { Caller, Clock, Feed } from '@carillon/core'

import type { Identity } from '../identity.ts'
import { ProblemError } from '../problems/problem-error.ts'
import { CatchUp } from './catch-up.ts'
import { heartbeatText, openingText } from './event-text.ts'
import { Follower } from './follower.ts'
import { ProjectFeed } from './project-feed.ts'

const HEARTBEAT_MS = 15_000
const RETRY_AFTER_SECONDS = '10'

interface FeedHubDeps {
  readonly feed: Feed
  readonly clock: Clock
  readonly streamsPerKey: number
}

interface FollowRequest {
  readonly identity: Identity
  readonly lastEventId: string | undefined
  /** Asked now and then: a key may be revoked while it is used. */
  readonly isStillAllowed: () => Promise<boolean>
}

interface OpenProject {
  readonly project: ProjectFeed
  users: number
}

/** Everybody who follows events: one reader per project, however many follow it. */
export class FeedHub {
  readonly #deps: FeedHubDeps
  readonly #projects = new Map<string, OpenProject>()
  readonly #followers = new Set<Follower>()
  readonly #streams = new Map<string, number>()
  #isClosed = false

  constructor(deps: FeedHubDeps) {
    this.#deps = deps
  }

  /** A stream of server-sent events. Whatever stands against it is thrown before it begins. */
  async follow({ identity, lastEventId, isStillAllowed }: FollowRequest): Promise<Readable> {
    const { caller, keyId } = identity
    this.#countStream(keyId)
    const project = this.#enter(caller)
    const follower = new Follower()
    follower.signal.addEventListener('abort', () => this.#leave(follower, caller, keyId), { once: true })
    try {
      if (lastEventId === undefined) await this.#begin(project, follower)
      else await new CatchUp({ ...this.#deps, caller, project, follower }).begin(lastEventId)
    } catch (error) {
      follower.stream.destroy()
      throw error
    }
    this.#followers.add(follower)
    this.#beat(follower, project, isStillAllowed)
    // The app began to close while this one was on its way.
    if (this.#isClosed) follower.end()
    return follower.stream
  }

  /** Ends all streams, and begins no other. */
  close(): void {
    this.#isClosed = true
    for (const follower of this.#followers) follower.end()
  }

  async #begin(project: ProjectFeed, follower: Follower): Promise<void> {
    await project.start()
    // At once, one after the other: nothing may come between what is told and what follows.
    follower.send(openingText(project.cursor))
    project.add(follower)
    follower.goLive()
  }

  #beat(follower: Follower, project: ProjectFeed, isStillAllowed: () => Promise<boolean>): void {
    const cancel = this.#deps.clock.after(HEARTBEAT_MS, () => {
      follower.signal.removeEventListener('abort', cancel)
      follower.send(heartbeatText(follower.isLive ? project.cursor : undefined))
      void this.#endIfRefused(follower, isStillAllowed)
      this.#beat(follower, project, isStillAllowed)
    })
    if (follower.signal.aborted) cancel()
    else follower.signal.addEventListener('abort', cancel, { once: true })
  }

  async #endIfRefused(follower: Follower, isStillAllowed: () => Promise<boolean>): Promise<void> {
    try {
      if (!(await isStillAllowed())) follower.end()
    } catch {
      // Nobody knows while the database is away, and nothing is sent that would need it.
    }
  }

  #countStream(keyId: string): void {
    const streams = this.#streams.get(keyId) ?? 0
    if (streams >= this.#deps.streamsPerKey) {
      const detail = `expected at most ${this.#deps.streamsPerKey} streams of one key, got another: close one first`
      throw new ProblemError('rate_limited', detail, { headers: { 'retry-after': RETRY_AFTER_SECONDS } })
    }
    this.#streams.set(keyId, streams + 1)
  }

  #enter(caller: Caller): ProjectFeed {
    const { feed, clock } = this.#deps
    const name = projectName(caller)
    const open = this.#projects.get(name) ?? { project: new ProjectFeed({ feed, clock, caller }), users: 0 }
    open.users += 1
    this.#projects.set(name, open)
    return open.project
  }

  #leave(follower: Follower, caller: Caller, keyId: string): void {
    this.#followers.delete(follower)
    const streams = (this.#streams.get(keyId) ?? 0) - 1
    if (streams > 0) this.#streams.set(keyId, streams)
    else this.#streams.delete(keyId)
    const name = projectName(caller)
    const open = this.#projects.get(name)
    if (open === undefined) return
    open.project.remove(follower)
    open.users -= 1
    if (open.users > 0) return
    this.#projects.delete(name)
    open.project.close()
  }
}

function projectName({ tenantId, projectId }: Caller): string {
  return JSON.stringify([tenantId, projectId])
}
