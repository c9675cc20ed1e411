import type { Readable } from 'node:stream'

import type { Caller, Clock, FailureRecord, Feed } from '@carillon/core'
import type { Logger } from 'pino'

import type { Identity } from '../identity.ts'
import { KeyPlaces } from '../key-places.ts'
import { CatchUp } from './catch-up.ts'
import { heartbeatText, openingText } from './event-text.ts'
import { Follower } from './follower.ts'
import { Permission } from './permission.ts'
import { ProjectFeed } from './project-feed.ts'

const HEARTBEAT_MS = 15_000
const RETRY_AFTER_SECONDS = 10

interface FeedHubDeps {
  readonly feed: Feed
  readonly clock: Clock
  readonly streamsPerKey: number
  readonly logger: Pick<Logger, 'warn'>
  /** Told of polls that fail. @default nobody is */
  readonly failures?: Pick<FailureRecord, 'failed' | 'succeeded'>
}

interface FollowRequest {
  readonly identity: Identity
  readonly lastEventId: string | undefined
  /** Asked again and again: a key may be revoked while it is used. */
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
  readonly #places: KeyPlaces
  #isClosed = false

  constructor(deps: FeedHubDeps) {
    this.#deps = deps
    const { streamsPerKey: max } = deps
    this.#places = new KeyPlaces({ max, noun: 'streams', retryAfterSeconds: RETRY_AFTER_SECONDS })
  }

  /** A stream of server-sent events. Whatever stands against it is thrown before it begins. */
  async follow({ identity, lastEventId, isStillAllowed }: FollowRequest): Promise<Readable> {
    const { caller, keyId } = identity
    this.#places.take(keyId)
    const project = this.#enter(caller)
    const permission = new Permission({ clock: this.#deps.clock, isStillAllowed })
    const follower = new Follower(permission, (error) => {
      this.#deps.logger.warn({ event: 'feed.stream_failed', error }, 'a stream of events was cut')
    })
    follower.signal.addEventListener('abort', () => this.#leave(follower, caller, keyId), { once: true })
    try {
      if (lastEventId === undefined) await this.#begin(project, follower)
      else await new CatchUp({ ...this.#deps, caller, project, follower }).begin(lastEventId)
    } catch (error) {
      follower.stream.destroy()
      throw error
    }
    this.#followers.add(follower)
    this.#beat(follower, project)
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

  #beat(follower: Follower, project: ProjectFeed): void {
    const cancel = this.#deps.clock.after(HEARTBEAT_MS, () => {
      follower.signal.removeEventListener('abort', cancel)
      follower.send(heartbeatText(follower.isLive ? project.cursor : undefined))
      void follower.endIfRefused()
      this.#beat(follower, project)
    })
    if (follower.signal.aborted) cancel()
    else follower.signal.addEventListener('abort', cancel, { once: true })
  }

  #enter(caller: Caller): ProjectFeed {
    const { feed, clock, failures } = this.#deps
    const name = projectName(caller)
    const open = this.#projects.get(name) ?? { project: new ProjectFeed({ feed, clock, caller, failures }), users: 0 }
    open.users += 1
    this.#projects.set(name, open)
    return open.project
  }

  #leave(follower: Follower, caller: Caller, keyId: string): void {
    this.#followers.delete(follower)
    this.#places.giveBack(keyId)
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
