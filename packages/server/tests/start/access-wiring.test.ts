import { createClient, type Client, type Run } from '@carillon/api'
import { createDatabase, type TestDatabase } from '@carillon/core/testing'
import { SignJWT } from 'jose'
import { afterAll, beforeAll, expect, test } from 'vitest'

import { readSettings, startEverything, type RunningCarillon } from '../../src/index.ts'
import { createKey, soundClaims, startJwksServer, type JwksServer, type SigningKey } from '../auth/issuer.ts'
import { OpenFgaStandIn, STORE_ID } from '../auth/open-fga-stand-in.ts'

const ADMIN_KEY = 'abcdefghijklmnopqrstuvwxyz'
const PLACE = { tenant: 'acme', project: 'web' }
const OBJECT = 'project:acme/web'
const FORBIDDEN = { status: 403, code: 'forbidden' }

let database: TestDatabase
let jwks: JwksServer
let openFga: OpenFgaStandIn
let service: RunningCarillon
let signingKey: SigningKey

beforeAll(async () => {
  signingKey = await createKey('current')
  database = await createDatabase()
  jwks = await startJwksServer(signingKey)
  openFga = await OpenFgaStandIn.start()
  const { iss, aud } = soundClaims(0) as { iss: string; aud: string }
  service = await startEverything(
    readSettings({
      DATABASE_URL: database.url,
      CARILLON_PORT: '0',
      CARILLON_ADMIN_KEY: ADMIN_KEY,
      CARILLON_ALLOWED_TARGETS: '127.0.0.1',
      CARILLON_LOG_LEVEL: 'silent',
      CARILLON_JWT_ISSUER: iss,
      CARILLON_JWT_AUDIENCE: aud,
      CARILLON_JWT_JWKS_URL: jwks.url,
      CARILLON_OPENFGA_URL: openFga.url,
      CARILLON_OPENFGA_STORE_ID: STORE_ID,
    }),
  )
})
afterAll(async () => {
  await service.stop()
  for (const part of [openFga, jwks, database]) await part[Symbol.asyncDispose]()
})

/** A client with a token of the identity provider that claims the role admin. */
async function withToken(sub: string): Promise<Client> {
  const claims = { ...soundClaims(Math.floor(Date.now() / 1000)), sub }
  const header = { alg: signingKey.alg, kid: signingKey.publicJwk.kid ?? '', typ: 'JWT' }
  return createClient(service.url, await new SignJWT(claims).setProtectedHeader(header).sign(signingKey.privateKey))
}

async function withKey(subject: string): Promise<Client> {
  const { key } = await createClient(service.url, ADMIN_KEY).keys.create({ ...PLACE, subject, role: 'admin' })
  return createClient(service.url, key)
}

function schedule(name: string) {
  return {
    name,
    cadence: { kind: 'cron', expression: '@daily' },
    target: { kind: 'http', url: 'http://127.0.0.1:9/' },
  } as const
}

/** Follows the events, begins a run, and returns the run as it is at its end. */
async function ended(client: Client, begin: () => Promise<Run>): Promise<Run> {
  const { promise: followed, resolve } = Promise.withResolvers<void>()
  const events = client.events({ onPosition: () => resolve() })
  const first = events.next()
  await followed
  const { id } = await begin()
  for (let event = await first; event.done !== true; event = await events.next()) {
    const { value } = event
    if (value.event !== 'run' || value.data.run.id !== id || value.data.run.completedAt === null) continue
    await events.return()
    return value.data.run
  }
  throw new Error('the stream ended')
}

test('a service with an identity provider and OpenFGA accepts tokens, and asks OpenFGA about every request', async () => {
  openFga.write({ user: 'user:alice', relation: 'admin', object: OBJECT })
  openFga.write({ user: 'user:bob', relation: 'member', object: OBJECT })
  const [alice, bob, mallory] = [await withToken('alice'), await withToken('bob'), await withToken('mallory')]

  expect(await alice.schedules.create(schedule('By token'))).toMatchObject({ ...PLACE, ownerSubject: 'user:alice' })
  expect((await bob.schedules.list()).items).toHaveLength(1)
  await expect(bob.schedules.create(schedule('Beyond'))).rejects.toMatchObject(FORBIDDEN)
  await expect(mallory.schedules.list()).rejects.toMatchObject(FORBIDDEN)
})

test('a member that was removed from the project is refused, even if OpenFGA would allow it', async () => {
  openFga.write({ user: 'user:alice', relation: 'admin', object: OBJECT })
  openFga.write({ user: 'user:carol', relation: 'admin', object: OBJECT })
  const [alice, carol] = [await withToken('alice'), await withToken('carol')]
  await alice.members.put('user:carol', { role: 'admin' })

  await alice.members.remove('user:carol')

  await expect(carol.schedules.list()).rejects.toMatchObject(FORBIDDEN)
})

test('while OpenFGA fails, only the installation is let in', async () => {
  const robot = await withKey('service:robot')
  openFga.misbehave = (response) => response.writeHead(500).end()

  await expect(robot.schedules.list()).rejects.toMatchObject({ status: 503, code: 'unavailable' })
  expect((await createClient(service.url, ADMIN_KEY).schedules.list()).items).toEqual([])
  openFga.misbehave = null
})

test('the worker asks OpenFGA too: a schedule does not run if OpenFGA no longer allows its owner', async () => {
  const tuple = { user: 'user:dora', relation: 'admin', object: OBJECT } as const
  openFga.write(tuple)
  openFga.write({ user: 'service:robot', relation: 'admin', object: OBJECT })
  const robot = await withKey('service:robot')
  const { id } = await (await withToken('dora')).schedules.create(schedule('Dora’s'))

  openFga.delete(tuple)
  const run = await ended(robot, () => robot.schedules.run(id))

  expect(run).toMatchObject({ state: 'skipped', reason: 'access_lost', attemptCount: 0 })
})
