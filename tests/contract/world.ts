import { createHash, randomUUID } from 'node:crypto'
import { join } from 'node:path'

import { createClient, type Client, type Run, type ScheduleInput } from '@carillon/api'
import { createDatabase } from '@carillon/core/testing'
import { readSettings, startServer } from '@carillon/server'

import type { DocumentedOperation } from './document.ts'
import { openRelay } from './relay.ts'
import { SCHEDULE, type WireRequest } from './wire-request.ts'

interface WorldOptions {
  /** The rate limit of one key. @default a limit that no test reaches */
  readonly requestsPerMinute?: number
  /** @default true */
  readonly canKeepSecrets?: boolean
  /** If true, the connections to the database are cut once the server has started. */
  readonly isUnplugged?: boolean
}

interface SendOptions {
  /** @default the admin key */
  readonly key?: string
  /** Sent unchanged as the body. */
  readonly text?: string
  /** @default 'application/json' */
  readonly mediaType?: string
}

/** A server with a database of its own, and functions that create its contents. It has no worker, so runs stay waiting. */
export interface World {
  readonly url: string
  readonly adminKey: string
  readonly client: Client
  send(operation: DocumentedOperation, request: WireRequest, options?: SendOptions): Promise<Response>
  /** Each function creates the resource that it names, and returns its id. */
  schedule(): Promise<string>
  pausedSchedule(): Promise<string>
  grant(): Promise<string>
  key(): Promise<string>
  secret(): Promise<string>
  member(): Promise<string>
  run(): Promise<Run>
  /** A completion and a heartbeat of a detached run, with the token of the run. */
  completion(): Promise<WireRequest>
  heartbeat(): Promise<WireRequest>
  /** Ends all runs that are open. */
  endRuns(): Promise<void>
  nextSlot(scheduleId: string): Promise<string>
  memberKey(): Promise<string>
  /** The key of an admin of the project. */
  projectKey(): Promise<string>
  /** The key of an admin that was removed from the project. */
  removedKey(): Promise<string>
  /** The key of an admin in a project that has as many schedules as its tenant allows. */
  keyOfFullProject(): Promise<string>
  unique(name: string): string
  /** Begins a create and holds it. @returns a function that lets it finish */
  holdCreate(input: ScheduleInput, idempotencyKey: string): Promise<() => Promise<void>>
  close(): Promise<void>
}

/** A module with operations of every form: all suites of the contract test them like Carillon's own. */
const TICKET_MODULE = join(import.meta.dirname, '../../packages/server/tests/http/ticket-module.ts')
const ADMIN_KEY = 'the-key-of-this-installation'
const UNLIMITED = 1_000_000_000

export async function openWorld(options: WorldOptions = {}): Promise<World> {
  const database = await createDatabase()
  const relay = await openRelay(database.url)
  const settings = readSettings({
    DATABASE_URL: relay.url,
    CARILLON_PORT: '0',
    CARILLON_ADMIN_KEY: ADMIN_KEY,
    CARILLON_ALLOWED_TARGETS: '127.0.0.1',
    CARILLON_LOG_LEVEL: 'silent',
    CARILLON_RATE_LIMIT: String(options.requestsPerMinute ?? UNLIMITED),
    // The fuzz tests create many schedules.
    CARILLON_MAX_SCHEDULES_PER_PROJECT: 'none',
    CARILLON_MODULES: TICKET_MODULE,
    ...(options.canKeepSecrets === false ? {} : { CARILLON_SECRETS_KEY: Buffer.alloc(32, 7).toString('base64') }),
  })
  const service = await startServer(settings)
  if (options.isUnplugged === true) await relay.unplug()
  const { url } = service
  const client = createClient(url, ADMIN_KEY)

  const schedule = async (): Promise<string> => (await client.schedules.create(SCHEDULE)).id
  /** A run as if a worker had called a target that passed the work on. */
  const detachedRun = async (): Promise<{ readonly id: string; readonly headers: Record<string, string> }> => {
    const { id } = await client.schedules.run(await schedule())
    await database.pool.query(
      `update carillon.runs
       set state = 'detached', attempt_count = 1, token = 1, worker_id = $1, started_at = now(), waits_for = 'completion',
         due_at = now() + interval '1 hour', lane = 'http~0'
       where id = $1`,
      [id],
    )
    const { rows } = await database.pool.query<{ key: Buffer }>('select key from carillon.callback_key')
    return { id, headers: { authorization: `Bearer ${tokenOf(id, rows[0]?.key ?? Buffer.alloc(0))}` } }
  }
  return {
    url,
    adminKey: ADMIN_KEY,
    client,
    send: (operation, request, { key = request.key ?? ADMIN_KEY, text, mediaType = 'application/json' } = {}) => {
      const target = new URL(
        operation.path.replaceAll(/\{(\w+)\}/g, (_braces, name: string) =>
          encodeURIComponent((request.params?.[name] ?? request.id ?? '').toWellFormed()).replace(/^\.+$/, '%2e'),
        ),
        url,
      )
      for (const [name, value] of Object.entries(request.query ?? {})) target.searchParams.set(name, value)
      const body = text ?? (request.body === undefined ? undefined : JSON.stringify(request.body))
      return fetch(target, {
        method: operation.method.toUpperCase(),
        headers: {
          authorization: `Bearer ${key}`,
          ...request.headers,
          ...(body === undefined ? {} : { 'content-type': mediaType }),
        },
        ...(body === undefined ? {} : { body }),
      })
    },
    schedule,
    pausedSchedule: async () => (await client.schedules.pause(await schedule(), { reason: 'for a test' })).id,
    grant: async () => (await client.grants.create({ scopes: ['http:dispatch:*'] })).id,
    key: async () => (await client.keys.create({ project: 'default', subject: 'user:bob', role: 'admin' })).id,
    run: async () => client.schedules.run(await schedule()),
    completion: async () => ({
      ...(await detachedRun()),
      query: { attempt: '1' },
      body: { outcome: 'succeeded', result: { pages: 7 } },
    }),
    heartbeat: detachedRun,
    endRuns: async () => {
      await database.pool.query(
        `update carillon.runs
         set state = 'cancelled', completed_at = now(), completion = null, worker_id = null, waits_for = null, due_at = null, lane = null
         where completed_at is null`,
      )
    },
    nextSlot: async (id) => (await client.schedules.slots(id, { limit: 1 })).items[0]?.scheduledFor ?? 'no slot',
    secret: async () => (await client.secrets.put(`secret-${randomUUID()}`, { value: 'kept' })).name,
    member: async () => (await client.members.put(`user:${randomUUID()}`, { role: 'member' })).subject,
    memberKey: async () =>
      (await client.keys.create({ project: 'default', subject: 'user:carol', role: 'member' })).key,
    projectKey: async () => (await client.keys.create({ project: 'default', subject: 'user:erik', role: 'admin' })).key,
    removedKey: async () => {
      const subject = 'user:dora'
      const { key } = await client.keys.create({ project: 'default', subject, role: 'admin' })
      await client.members.put(subject, { role: 'admin' })
      await client.members.remove(subject)
      return key
    },
    keyOfFullProject: async () => {
      const tenant = 'tiny'
      await client.tenants.put(tenant, { maxSchedulesPerProject: 1 })
      const { key } = await client.keys.create({
        tenant,
        project: randomUUID(),
        subject: 'service:filler',
        role: 'admin',
      })
      await createClient(url, key).schedules.create(SCHEDULE)
      return key
    },
    unique: (name) => `${name}-${randomUUID()}`,
    holdCreate: async (input, idempotencyKey) => {
      const holder = await database.pool.connect()
      await holder.query('begin; lock table carillon.schedules in access exclusive mode')
      const created = client.schedules.create(input, { idempotencyKey })
      const waiting = `select from pg_locks where not granted and relation = 'carillon.schedules'::regclass`
      while ((await holder.query(waiting)).rowCount === 0);
      return async () => {
        await holder.query('rollback')
        holder.release()
        await created
      }
    },
    close: async () => {
      await service.stop()
      await relay.unplug()
      await database[Symbol.asyncDispose]()
    },
  }
}

/** The token of a run of the project `default`, made by hand, so that a change of its form is noticed. */
function tokenOf(runId: string, key: Buffer): string {
  const sha256 = (...parts: readonly Buffer[]): Buffer => createHash('sha256').update(Buffer.concat(parts)).digest()
  const message = Buffer.concat([Buffer.from(runId.replaceAll('-', ''), 'hex'), Buffer.from('default/default')])
  const scope = Buffer.from(JSON.stringify(['default', 'default'])).toString('base64url')
  return `${scope}.${sha256(key, sha256(key, message)).toString('base64url')}`
}
