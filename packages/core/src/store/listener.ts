import pg from 'pg'

import type { Clock } from '../clock.ts'
import type { Events } from '../events.ts'
import { own, PeriodicService } from '../service.ts'
import { AGENDA_CHANNEL, CANCEL_CHANNEL } from './notifications.ts'

export interface ListenerDeps {
  readonly connectionString: string
  readonly clock: Clock
  readonly events: Events
  /**
   * Something may be due sooner than was thought, in this lane, or anywhere if it is empty. Also after a new connection: what was
   * said meanwhile went unheard.
   */
  readonly onAgenda: (lane: string) => void
  readonly onCancel: (runId: string) => void
}

const CHECK_EVERY_MS = 1000
const TIMEOUT_MS = 5000
/** A goodbye on a socket that leads nowhere is never answered. */
const GOODBYE_MS = 500

/**
 * Hears what other processes notify, on a connection of its own. Checked every second by a query, since a half-open socket
 * looks like silence. Whatever it misses, the keeper's look and the heartbeat find.
 */
export class Listener extends PeriodicService<{ readonly connected: number }> {
  override readonly name = 'listener'
  readonly #deps: ListenerDeps
  #client: pg.Client | undefined

  constructor(deps: ListenerDeps) {
    super(deps, CHECK_EVERY_MS)
    this.#deps = deps
  }

  async runOnce(): Promise<{ readonly connected: number }> {
    const client = this.#client
    if (client === undefined) {
      this.#client = await this.#connect()
      this.#deps.onAgenda('')
      return { connected: 1 }
    }
    try {
      await client.query('select 1')
    } catch (error) {
      await this.#disconnect(client)
      throw error
    }
    return { connected: 0 }
  }

  override async stop(): Promise<void> {
    await super.stop()
    if (this.#client !== undefined) await this.#disconnect(this.#client)
  }

  async #connect(): Promise<pg.Client> {
    const client = new pg.Client({
      connectionString: this.#deps.connectionString,
      application_name: 'carillon listener',
      connectionTimeoutMillis: TIMEOUT_MS,
      query_timeout: TIMEOUT_MS,
      keepAlive: true,
    })
    client.on('error', () => own(this.#deps, this.name, this.#disconnect(client)))
    client.on('notification', ({ channel, payload }) => {
      if (channel === AGENDA_CHANNEL) this.#deps.onAgenda(payload ?? '')
      if (channel === CANCEL_CHANNEL && payload !== undefined) this.#deps.onCancel(payload)
    })
    try {
      await client.connect()
      await client.query(`listen ${AGENDA_CHANNEL}; listen ${CANCEL_CHANNEL}`)
    } catch (error) {
      await this.#disconnect(client)
      throw error
    }
    return client
  }

  /** Waits for the server's goodbye, but not for long: it may be gone already. */
  async #disconnect(client: pg.Client): Promise<void> {
    if (this.#client === client) this.#client = undefined
    const cancel = this.#deps.clock.after(GOODBYE_MS, () => client.connection.stream.destroy())
    await client.end().catch(() => undefined)
    cancel()
  }
}
