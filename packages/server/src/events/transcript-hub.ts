import type { Readable } from 'node:stream'

import { CarillonError, type Caller, type Clock } from '@carillon/core'
import type { Logger } from 'pino'

import type { Identity } from '../auth/identity.ts'
import { Follower } from './follower.ts'
import { startHeartbeat } from './heartbeat.ts'
import { heartbeatText, RETRY_TEXT } from './messages.ts'
import { StreamPermission } from './permission.ts'
import type { ReadTranscript, TranscriptMessages } from './transcript-messages.ts'
import { POLL_MS, TranscriptPoller } from './transcript-poller.ts'

interface TranscriptHubDeps {
  readonly read: ReadTranscript
  readonly clock: Clock
  /** How many streams a key may have open. `acquire` throws if there are too many. */
  readonly streamLimit: { acquire(keyId: string): void; release(keyId: string): void }
  readonly logger: Pick<Logger, 'warn'>
}

interface FollowRequest {
  readonly identity: Identity
  readonly runId: string
  readonly lastEventId: string | undefined
  /** Called again and again while the stream is open. */
  readonly isStillAllowed: () => Promise<boolean>
}

interface OpenRun {
  readonly poller: TranscriptPoller
  users: number
}

/** All open streams of transcripts. Each run has one poller, however many clients follow it. */
export class TranscriptHub {
  readonly #deps: TranscriptHubDeps
  readonly #runs = new Map<string, OpenRun>()
  readonly #followers = new Set<Follower>()
  #isClosed = false

  constructor(deps: TranscriptHubDeps) {
    this.#deps = deps
  }

  /** Opens a stream of server-sent events. Every refusal is thrown before the stream begins. */
  async follow({ identity, runId, lastEventId, isStillAllowed }: FollowRequest): Promise<Readable> {
    const { caller, keyId } = identity
    const { read, clock, streamLimit, logger } = this.#deps
    streamLimit.acquire(keyId)
    const permission = new StreamPermission({ clock, isStillAllowed })
    const follower = new Follower(permission, (error) => {
      logger.warn({ event: 'transcript.stream_failed', error }, 'a stream of a transcript was cut because of a fault')
    })
    const poller = this.#enter(caller, runId)
    follower.signal.addEventListener('abort', () => this.#leave(follower, caller, runId, keyId), { once: true })
    try {
      const first = await read(caller, runId, lastEventId)
      follower.sendUnchecked(`${RETRY_TEXT}\n`)
      void this.#run(follower, { caller, runId, poller, first, lastEventId }).catch((error: unknown) =>
        follower.fail(error),
      )
    } catch (error) {
      follower.stream.destroy()
      throw error
    }
    this.#followers.add(follower)
    startHeartbeat(clock, follower, () => heartbeatText(undefined))
    // The app may have begun to close meanwhile.
    if (this.#isClosed) follower.end()
    return follower.stream
  }

  /** Ends all streams. Streams that are being opened end as soon as they begin. */
  close(): void {
    this.#isClosed = true
    for (const follower of this.#followers) follower.end()
  }

  /** Sends a follower what is stored, no faster than it reads, and then hands it over to the poller of the run. */
  async #run(
    follower: Follower,
    from: {
      readonly caller: Caller
      readonly runId: string
      readonly poller: TranscriptPoller
      readonly first: TranscriptMessages
      readonly lastEventId: string | undefined
    },
  ): Promise<void> {
    const { caller, runId, poller, first } = from
    let position = from.lastEventId
    for (let page: TranscriptMessages | undefined = first; page !== undefined;) {
      for (const { id, text } of page.lines) {
        follower.sendEvent(text)
        position = id
      }
      await follower.whenDrained()
      if (page.end !== undefined) return follower.endWith(page.end)
      if (!page.isMore && poller.add(follower, position)) return
      page = await this.#read(follower, caller, runId, position)
    }
    follower.end()
  }

  /** Retries while the database is unreachable: the client stays connected meanwhile. Undefined if there is nothing to read any more. */
  async #read(
    follower: Follower,
    caller: Caller,
    runId: string,
    after: string | undefined,
  ): Promise<TranscriptMessages | undefined> {
    const { read, clock } = this.#deps
    while (!follower.isOver) {
      try {
        return await read(caller, runId, after)
      } catch (error) {
        if (error instanceof CarillonError) return undefined
        await clock.sleep(POLL_MS, follower.signal)
      }
    }
    return undefined
  }

  #enter(caller: Caller, runId: string): TranscriptPoller {
    const { read, clock, logger } = this.#deps
    const name = runName(caller, runId)
    const onFailure = (error: unknown): void => {
      logger.warn({ event: 'transcript.poll_failed', error }, 'a transcript that is followed could not be read')
    }
    const open = this.#runs.get(name) ?? {
      poller: new TranscriptPoller({ read, clock, caller, runId, onFailure }),
      users: 0,
    }
    open.users += 1
    this.#runs.set(name, open)
    return open.poller
  }

  #leave(follower: Follower, caller: Caller, runId: string, keyId: string): void {
    this.#followers.delete(follower)
    this.#deps.streamLimit.release(keyId)
    const name = runName(caller, runId)
    const open = this.#runs.get(name)
    if (open === undefined) return
    open.poller.remove(follower)
    open.users -= 1
    if (open.users > 0) return
    this.#runs.delete(name)
    open.poller.close()
  }
}

function runName({ tenantId, projectId }: Caller, runId: string): string {
  return JSON.stringify([tenantId, projectId, runId])
}
