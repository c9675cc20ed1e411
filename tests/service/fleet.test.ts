import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'

import { createClient, type Client, type LiveEvent } from '@carillon/api'
import { createDatabase } from '@carillon/core/testing'
import { afterAll, beforeAll, expect, test } from 'vitest'

import { CarillonProcess } from '../cli/carillon-process.ts'
import { REPOSITORY } from '../house/run-tool.ts'

const ADMIN_KEY = 'the-key-of-this-installation'
const SCHEDULES = 60

// Two servers and two workers, each a process of its own, on one Postgres.
const database = await createDatabase()
const calls: string[] = []
const target = createServer((request, response) => {
  calls.push(String(request.headers['idempotency-key']))
  request.resume().on('end', () => response.end())
})
interface Serving {
  readonly url: string
  readonly process: CarillonProcess
}

/** Processes are added when they start, so that all are stopped even if a later one fails to start. */
const started: CarillonProcess[] = []
let servers: readonly [Serving, Serving]
let workers: readonly [Serving, Serving]
let one: Client
let two: Client

beforeAll(async () => {
  target.listen(0, '127.0.0.1')
  await once(target, 'listening')
  const env = {
    DATABASE_URL: database.url,
    CARILLON_ADMIN_KEY: ADMIN_KEY,
    CARILLON_ALLOWED_TARGETS: '127.0.0.1',
    CARILLON_PORT: '0',
  }
  const work = ['worker', '--targets', 'http', '--concurrency', '5', '--metrics-port', '0']
  servers = [await serve(['server'], env), await serve(['server'], env)]
  workers = [await serve([...work, '--name', 'one'], env), await serve([...work, '--name', 'two'], env)]
  one = createClient(servers[0].url, ADMIN_KEY)
  two = createClient(servers[1].url, ADMIN_KEY)
}, 60_000)

afterAll(async () => {
  for (const process of started) await process.stop('SIGKILL')
  target.close()
  await database[Symbol.asyncDispose]()
})

/** Resolves once the process has printed its address. */
async function serve(args: readonly string[], env: Readonly<Record<string, string>>): Promise<Serving> {
  const process = new CarillonProcess(args, { env, cwd: REPOSITORY })
  started.push(process)
  const [url = ''] = /http:\/\/127\.0\.0\.1:\d+/.exec(await process.shown(/http:\/\/127\.0\.0\.1:\d+/)) ?? []
  return { url, process }
}

function url(path: string): string {
  return `http://127.0.0.1:${(target.address() as AddressInfo).port}${path}`
}

function later(name: string, ms: number): Parameters<Client['schedules']['create']>[0] {
  const at = new Date(Date.now() + ms).toISOString()
  return { name, cadence: { kind: 'once', at }, target: { kind: 'http', url: url(`/${encodeURIComponent(name)}`) } }
}

/** Reads events until one matches. */
async function readUntil(
  events: AsyncGenerator<LiveEvent>,
  isWanted: (event: LiveEvent) => boolean,
): Promise<LiveEvent[]> {
  const read: LiveEvent[] = []
  for await (const event of events) {
    read.push(event)
    if (isWanted(event)) return read
  }
  throw new Error('the stream ended')
}

test('a key that one server creates is accepted by the other one, and refused by both once it is revoked', async () => {
  const { id, key } = await one.keys.create({ project: 'default', subject: 'user:alice', role: 'member' })
  const alice = [servers[0], servers[1]].map(({ url: at }) => createClient(at, key))

  await Promise.all(alice.map((client) => client.schedules.list()))
  await two.keys.revoke(id)
  const refusals = await Promise.allSettled(alice.map((client) => client.schedules.list()))

  expect(refusals).toMatchObject([{ reason: { code: 'unauthenticated' } }, { reason: { code: 'unauthenticated' } }])
})

test('a create that is sent to both servers with one Idempotency-Key happens once', async () => {
  const input = later('Once for both', 3_600_000)
  const answers = await Promise.allSettled(
    [one, two, one, two].map((client) => client.schedules.create(input, { idempotencyKey: 'for both' })),
  )
  const again = await two.schedules.create(input, { idempotencyKey: 'for both' })

  const made = answers.flatMap((answer) => (answer.status === 'fulfilled' ? [answer.value.id] : []))
  expect(new Set([...made, again.id])).toEqual(new Set([again.id]))
  const refused = answers.flatMap((answer) => (answer.status === 'rejected' ? [answer.reason as { code: string }] : []))
  expect(refused.filter(({ code }) => code !== 'idempotency_in_flight')).toEqual([])
  expect((await one.schedules.list({ q: 'Once for both' })).items).toHaveLength(1)
})

test('an edit through one server is refused if it is based on an outdated read through the other one', async () => {
  const { id, revision } = await one.schedules.create(later('Edited twice', 3_600_000))
  const edited = await one.schedules.edit(id, { name: 'Edited once' }, { revision })

  const refusal: unknown = await two.schedules
    .edit(id, { name: 'Too late' }, { revision })
    .catch((error: unknown) => error)

  expect(refusal).toMatchObject({ status: 412, code: 'revision_conflict' })
  expect(await two.schedules.get(id)).toEqual(edited)
})

test('a schedule that is created through one server runs once on some worker, and the other server streams its events (I2)', async () => {
  const events = two.events()
  const listening = readUntil(events, countdown(SCHEDULES))
  calls.length = 0
  const ids = new Set<string>()
  for (let n = 0; n < SCHEDULES; n += 1) ids.add((await one.schedules.create(later(`Count ${n}`, 3000))).id)

  const read = await listening

  const succeeded = read.flatMap((event) =>
    event.event === 'run' && event.data.change === 'succeeded' ? [event.data] : [],
  )
  expect(new Set(succeeded.map(({ run }) => run.scheduleId))).toEqual(ids)
  expect(calls).toHaveLength(SCHEDULES)
  expect(new Set(calls).size).toBe(SCHEDULES)
  const pages = await Promise.all([...ids].map((id) => two.schedules.runs(id)))
  expect(pages.map(({ items }) => items.map(({ state, attemptCount }) => ({ state, attemptCount })))).toEqual(
    pages.map(() => [{ state: 'succeeded', attemptCount: 1 }]),
  )
}, 60_000)

test('if one server and one worker are killed, the others continue, and the audit finds nothing (I6)', async () => {
  await servers[0].process.stop('SIGKILL')
  await workers[0].process.stop('SIGKILL')
  calls.length = 0
  const events = two.events()
  const listening = readUntil(events, countdown(10))
  for (let n = 0; n < 10; n += 1) await two.schedules.create(later(`After the crash ${n}`, 2000))
  await listening

  expect(new Set(calls).size).toBe(10)
  const { requestedAt } = await two.audit.request()
  // No event reports the end of an audit, so this polls. The test's own time limit is the bound.
  let latest = (await two.audit.get()).latest
  while (latest?.isWhole !== true || latest.startedAt < requestedAt) latest = (await two.audit.get()).latest
  expect(latest).toMatchObject({ findings: 0, repaired: 0, unreadable: 0 })
  expect(latest.slots).toBeGreaterThanOrEqual(SCHEDULES + 10)
}, 60_000)

test('a server and a worker stop in order on SIGTERM', async () => {
  expect(await workers[1].process.stop('SIGTERM')).toMatchObject({ exitCode: 0 })
  expect(await servers[1].process.stop('SIGTERM')).toMatchObject({ exitCode: 0 })
})

/** Returns a function that is true for the last of `count` successful runs. */
function countdown(count: number): (event: LiveEvent) => boolean {
  let left = count
  return (event) => {
    if (event.event === 'run' && event.data.change === 'succeeded') left -= 1
    return left === 0
  }
}
