import type { Readable } from 'node:stream'

import type { Caller, Clock, FailureRecord, EventLog } from '@carillon/core'
import type { Logger } from 'pino'

import type { Identity } from '../auth/identity.ts'
import { CatchUp } from './catch-up.ts'
import { Follower } from './follower.ts'
import { startHeartbeat } from './heartbeat.ts'
import { createRenderer, heartbeatText, openingText, type RenderEntries, type ToEvent } from './messages.ts'
import { StreamPermission } from './permission.ts'
import { ProjectPoller } from './project-poller.ts'

interface EventHubDeps {
  readonly eventLog: EventLog
  readonly clock: Clock
  readonly toEvent: ToEvent
  /** How many streams a key may have open. `acquire` throws if there are too many. */
  readonly streamLimit: { acquire(keyId: string): void; release(keyId: string): void }
  readonly logger: Pick<Logger, 'warn'>
  /** Records failed polls. @default they are not recorded */
  readonly failures?: Pick<FailureRecord, 'failed' | 'succeeded'>
}

interface FollowRequest {
  readonly identity: Identity
  readonly lastEventId: string | undefined
  /** Called again and again while the stream is open. */
  readonly isStillAllowed: () => Promise<boolean>
}

interface OpenProject {
  readonly project: ProjectPoller
  users: number
}

/** All open event streams. Each project has one poller, however many clients follow it. */
export class EventHub {
  readonly #deps: EventHubDeps
  readonly #render: RenderEntries
  readonly #projects = new Map<string, OpenProject>()
  readonly #followers = new Set<Follower>()
  #isClosed = false

  constructor(deps: EventHubDeps) {
    this.#deps = deps
    this.#render = createRenderer(deps.clock, deps.toEvent)
  }

  /** Opens a stream of server-sent events. Every refusal is thrown before the stream begins. */
  async follow({ identity, lastEventId, isStillAllowed }: FollowRequest): Promise<Readable> {
    const { caller, keyId } = identity
    const { eventLog, clock, streamLimit, logger } = this.#deps
    streamLimit.acquire(keyId)
    const project = this.#enter(caller)
    const permission = new StreamPermission({ clock, isStillAllowed })
    const follower = new Follower(permission, (error) => {
      logger.warn({ event: 'event_log.stream_failed', error }, 'an event stream was cut because of a fault')
    })
    follower.signal.addEventListener('abort', () => this.#leave(follower, caller, keyId), { once: true })
    try {
      if (lastEventId === undefined) await this.#beginAtEnd(project, follower)
      else await new CatchUp({ eventLog, clock, caller, render: this.#render, project, follower }).begin(lastEventId)
    } catch (error) {
      follower.stream.destroy()
      throw error
    }
    this.#followers.add(follower)
    startHeartbeat(clock, follower, () => heartbeatText(follower.isLive ? project.cursor : undefined))
    // The app may have begun to close meanwhile.
    if (this.#isClosed) follower.end()
    return follower.stream
  }

  /** Ends all streams. Streams that are being opened end as soon as they begin. */
  close(): void {
    this.#isClosed = true
    for (const follower of this.#followers) follower.end()
  }

  async #beginAtEnd(project: ProjectPoller, follower: Follower): Promise<void> {
    await project.start()
    // No await from here on: the poller must not move between the cursor that is sent and the first delivery.
    follower.sendUnchecked(openingText(project.cursor))
    project.add(follower)
    follower.goLive()
  }

  #enter(caller: Caller): ProjectPoller {
    const { eventLog, clock, failures } = this.#deps
    const name = projectName(caller)
    const open = this.#projects.get(name) ?? {
      project: new ProjectPoller({ eventLog, clock, caller, render: this.#render, failures }),
      users: 0,
    }
    open.users += 1
    this.#projects.set(name, open)
    return open.project
  }

  #leave(follower: Follower, caller: Caller, keyId: string): void {
    this.#followers.delete(follower)
    this.#deps.streamLimit.release(keyId)
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
