import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { createServer, type IncomingHttpHeaders } from 'node:http'
import type { AddressInfo } from 'node:net'

import { createClient } from '@carillon/api'
import { createDatabase, type TestDatabase } from '@carillon/core/testing'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'

import { readSettings, startServer, startWorker, type Settings } from '../../src/index.ts'

const ADMIN_KEY = 'abcdefghijklmnopqrstuvwxyz'
const SECRETS_KEY = Buffer.alloc(32, 7).toString('base64')

let database: TestDatabase
const roles: string[] = []

beforeAll(async () => {
  database = await createDatabase()
})
afterAll(async () => {
  for (const role of roles) await database.pool.query(`drop role ${role}`)
  await database[Symbol.asyncDispose]()
})

/** Settings with a login role that owns nothing. Production has one such role for servers and one for workers. */
async function settingsOfRole(inRole?: 'carillon_api' | 'carillon_worker'): Promise<Settings & { user: string }> {
  const user = `login_${randomUUID().replaceAll('-', '')}`
  await database.pool.query(
    `create role ${user} login password 'plain' ${inRole === undefined ? '' : `in role ${inRole}`}`,
  )
  roles.push(user)
  const url = new URL(database.url)
  url.username = user
  url.password = 'plain'
  const settings = readSettings({
    DATABASE_URL: url.href,
    CARILLON_ADMIN_KEY: ADMIN_KEY,
    CARILLON_SECRETS_KEY: SECRETS_KEY,
    CARILLON_ALLOWED_TARGETS: '127.0.0.1',
    CARILLON_PORT: '0',
    CARILLON_LOG_LEVEL: 'silent',
  })
  return { ...settings, user }
}

/** Starts a target that resolves `called` with the headers of its first request. */
async function startTarget(): Promise<{ readonly url: string; readonly called: Promise<IncomingHttpHeaders> }> {
  const { promise: called, resolve } = Promise.withResolvers<IncomingHttpHeaders>()
  const server = createServer((request, response) => {
    resolve(request.headers)
    response.end('{}')
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  onTestFinished(() => {
    server.closeAllConnections()
    server.close()
  })
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/`, called }
}

test('a server and a worker with login roles that own nothing create and run a schedule with a secret', async () => {
  const server = await startServer(await settingsOfRole('carillon_api'))
  onTestFinished(() => server.stop())
  const worker = await startWorker(await settingsOfRole('carillon_worker'), { targetKinds: ['http'], metricsPort: 0 })
  onTestFinished(() => worker.stop())
  const target = await startTarget()
  const client = createClient(server.url, ADMIN_KEY)
  await client.secrets.put('token', { value: 'kept-until-it-is-sent' })

  const { id } = await client.schedules.create({
    name: 'Signed',
    cadence: { kind: 'cron', expression: '@daily' },
    target: { kind: 'http', url: target.url, auth: { kind: 'bearer', secretRef: 'token' } },
  })
  await client.schedules.run(id)

  expect((await target.called).authorization).toBe('Bearer kept-until-it-is-sent')
  expect((await fetch(`${server.url}/readyz`)).status).toBe(200)
  expect((await fetch(`${worker.url}/readyz`)).status).toBe(200)
})

const STARTS = [
  ['a server', 'carillon_api', (settings: Settings) => startServer(settings)],
  ['a worker', 'carillon_worker', (settings: Settings) => startWorker(settings, { targetKinds: ['http'] })],
] as const

describe.each(STARTS)(
  '%s whose login role may not act as %s does not start, and the error states what to grant',
  (_what, role, start) => {
    test.each([
      ['has no permission', ''],
      ['may only read', 'grant usage on schema carillon to $; grant select on carillon.migrations to $'],
    ])('the start is refused if the role %s', async (_rights, grants) => {
      const { user, ...settings } = await settingsOfRole()
      await database.pool.query(grants.replaceAll('$', user))

      await expect(start(settings)).rejects.toMatchObject({
        code: 'database_unreachable',
        message: expect.stringContaining(
          `may act as ${role}, got ${user}: have the owner of the database run \`grant ${role} to "${user}"\``,
        ) as unknown,
      })
      await database.pool.query(`drop owned by ${user}`)
    })
  },
)
