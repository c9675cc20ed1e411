import { createClient, type Client } from '@carillon/api'
import { createPool, migrateDown } from '@carillon/core'
import { createDatabase } from '@carillon/core/testing'
import { expect, onTestFinished, test } from 'vitest'

import { examine, readSettings, startEverything, type RunningCarillon, type Settings } from '../../src/index.ts'
import { startLocalServer } from './local-server.ts'

const adminKey = 'abcdefghijklmnopqrstuvwxyz'
const NEW_YEAR = { kind: 'cron', expression: '0 9 1 1 *' } as const

interface Carillon {
  readonly service: RunningCarillon
  readonly settings: Settings
  readonly client: Client
}

async function start(databaseUrl: string, schema: string): Promise<Carillon> {
  const environment = { CARILLON_SCHEMA: schema, DATABASE_URL: databaseUrl }
  const flags = { adminKey, port: 0, logLevel: 'silent', allowedTargets: ['127.0.0.1'] } as const
  const settings = readSettings(environment, flags)
  const service = await startEverything(settings)
  onTestFinished(() => service.stop())
  return { service, settings, client: createClient(service.url, adminKey) }
}

test('two complete Carillons in two schemas of one database do not see each other', async () => {
  const database = await createDatabase({ content: 'empty' })
  onTestFinished(() => database[Symbol.asyncDispose]())
  const [one, other] = [await start(database.url, 'carillon'), await start(database.url, 'second_one')]
  const [oneTarget, otherTarget] = [await startLocalServer(), await startLocalServer()]

  // The same name and the same Idempotency-Key: what one of them stores must not answer the other.
  const make = ({ client }: Carillon, port: number) =>
    client.schedules.create(
      { name: 'Digest', cadence: NEW_YEAR, target: { kind: 'http', url: `http://127.0.0.1:${port}/digest` } },
      { idempotencyKey: 'the-same' },
    )
  const made = await make(one, oneTarget.port)
  const otherMade = await make(other, otherTarget.port)
  await one.client.schedules.run(made.id)
  await other.client.schedules.run(otherMade.id)
  expect([await oneTarget.called, await otherTarget.called]).toEqual(['/digest', '/digest'])

  for (const { client, settings, own } of [
    { ...one, own: made.id },
    { ...other, own: otherMade.id },
  ]) {
    const { items } = await client.schedules.list()
    expect(items.map(({ id }) => id)).toEqual([own])
    const checks = await examine(settings)
    expect(checks.filter(({ status }) => status === 'failed')).toEqual([])
    expect(checks.find(({ name }) => name === 'workers')?.message).toBe('1 living worker, serving echo, http')
  }
  await expect(other.client.schedules.get(made.id)).rejects.toMatchObject({ status: 404 })
})

test('a schema is removed without touching the Carillon in the other one', async () => {
  const database = await createDatabase()
  onTestFinished(() => database[Symbol.asyncDispose]())
  const one = await start(database.url, 'carillon')
  const made = await one.client.schedules.create({
    name: 'Digest',
    cadence: NEW_YEAR,
    target: { kind: 'http', url: 'http://127.0.0.1:9/' },
  })
  const other = await start(database.url, 'second_one')
  await other.service.stop()
  const pool = createPool({ connectionString: database.url, schema: 'second_one' })

  await migrateDown(pool, { to: 0 })

  const { rows } = await pool.query(`select nspname from pg_namespace where nspname in ('carillon', 'second_one')`)
  await pool.end()
  expect(rows).toEqual([{ nspname: 'carillon' }])
  expect(await one.client.schedules.get(made.id)).toMatchObject({ id: made.id, state: 'active' })
})

test.each(['public', 'pg_catalog', 'Carillon', 'a b', '1st', 'a'.repeat(41), 'x;drop schema carillon'])(
  'a schema named %s is refused by the variable that names it',
  (schema) => {
    expect(() => readSettings({ CARILLON_SCHEMA: schema })).toThrow(/^CARILLON_SCHEMA: expected a schema of up to 40 /)
  },
)
