import pg from 'pg'

import type { Clock } from '../kernel/clock.ts'
import type { Events } from '../kernel/events.ts'
import { PeriodicService } from '../kernel/service.ts'
import type { Queryable, Tx } from './database.ts'
import { sql } from './sql.ts'

/* Notifications are hints. A worker that misses one finds the same row by polling, a second later at most. */

/** The channel on which workers learn that something comes due, as part of a statement. */
export const AGENDA_CHANNEL = sql`current_schema() || '_agenda'`
const CANCEL_CHANNEL = sql`current_schema() || '_cancel'`
/** How far ahead the pipeline loop looks. A change that makes something due sooner than this notifies the workers. */
export const NOTIFY_WITHIN_MS = 1000

/**
 * Notifies the workers that something in these lanes comes due before they look again. One notification per transaction: for
 * several lanes its payload is empty, which means any lane. Postgres delivers it when the transaction commits.
 */
export async function notifyDue(tx: Tx, p: { lanes: readonly string[] }): Promise<void> {
  const [lane, ...others] = new Set(p.lanes)
  if (lane === undefined) return
  await sql`select pg_notify(${AGENDA_CHANNEL}, ${others.length === 0 ? lane : ''})`.execute(tx)
}

/** Notifies the workers that a waiting run is due. */
export async function notifyDueRun(tx: Tx, p: { runId: string }): Promise<void> {
  await sql`select pg_notify(${AGENDA_CHANNEL}, runs.lane) from runs where runs.id = ${p.runId}`.execute(tx)
}

/** Notifies the workers which runs to cancel. */
export async function notifyCancel(db: Queryable, p: { runIds: readonly string[] }): Promise<void> {
  await sql`select pg_notify(${CANCEL_CHANNEL}, id::text) from unnest(${p.runIds}::uuid[]) as cancelled(id)`.execute(db)
}

export interface ListenerDeps {
  readonly connectionString: string
  /** The schema whose notifications it receives. */
  readonly schema: string
  readonly clock: Clock
  readonly events: Events
  /**
   * Called when something in this lane may be due sooner than the last look saw; '' stands for any lane. Also called after each new
   * connection, because notifications were lost before it.
   */
  readonly onAgenda: (lane: string) => void
  readonly onCancel: (runId: string) => void
}

const CHECK_EVERY_MS = 1000
/** How long to wait for a connection, and for the answer to a query. After that the listener connects again. */
const TIMEOUT_MS = 5000
/** How long to wait for Postgres when a connection is closed. On a half-open socket it never answers. */
const DISCONNECT_WITHIN_MS = 500

/**
 * Receives notifications on a connection of its own. A query checks the connection every second, because a half-open socket looks
 * like silence.
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
    const { events, schema } = this.#deps
    const [agenda, cancel] = [`${schema}_agenda`, `${schema}_cancel`]
    client.on('error', () => {
      // No code awaits this promise. Without a handler its rejection would end the process.
      this.#disconnect(client).catch((error: unknown) => events.emit('service.failed', { service: this.name, error }))
    })
    client.on('notification', ({ channel, payload }) => {
      if (channel === agenda) this.#deps.onAgenda(payload ?? '')
      if (channel === cancel && payload !== undefined) this.#deps.onCancel(payload)
    })
    try {
      await client.connect()
      await client.query(`listen ${agenda}; listen ${cancel}`)
    } catch (error) {
      await this.#disconnect(client)
      throw error
    }
    return client
  }

  /** Waits for Postgres' answer for a short time only: Postgres may be gone. */
  async #disconnect(client: pg.Client): Promise<void> {
    if (this.#client === client) this.#client = undefined
    const cancel = this.#deps.clock.after(DISCONNECT_WITHIN_MS, () => client.connection.stream.destroy())
    await client.end().catch(() => undefined)
    cancel()
  }
}
