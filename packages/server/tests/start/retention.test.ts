import { createClient } from '@carillon/api'
import { ensurePartitions, createDb } from '@carillon/core'
import { createDatabase, type TestDatabase } from '@carillon/core/testing'
import { expect, onTestFinished, test } from 'vitest'

import { startServer } from '../../src/start/server.ts'
import { readSettings, type Settings } from '../../src/start/settings.ts'
import { startEverything } from '../../src/start/up.ts'
import { startWorker } from '../../src/start/worker.ts'

const adminKey = 'abcdefghijklmnopqrstuvwxyz'
const DAY_MS = 86_400_000
const DAILY = { kind: 'interval', every: 'PT24H' } as const

function settingsFor({ url }: TestDatabase, retentionDays: string): Settings {
  const environment = { DATABASE_URL: url, CARILLON_RETENTION_DAYS: retentionDays }
  return readSettings(environment, { adminKey, port: 0, logLevel: 'silent', allowedTargets: ['127.0.0.1'] })
}

function daysAgo(days: number): Date {
  return new Date(Date.now() - days * DAY_MS)
}

/** The ledger's month of an instant, as its table is named. */
function monthOf(instant: Date): string {
  return `runs_${instant.toISOString().slice(0, 7).replace('-', '_')}`
}

test.each([
  ['a worker', 'drops', '7'],
  ['everything in one process', 'drops', '7'],
  ['a worker', 'keeps', ''],
])('%s %s the month of 60 days ago if CARILLON_RETENTION_DAYS is "%s"', async (what, does, retentionDays) => {
  const database = await createDatabase()
  onTestFinished(() => database[Symbol.asyncDispose]())
  const [recent, old] = [daysAgo(60), daysAgo(200)]
  for (const at of [recent, old]) await ensurePartitions(createDb(database.pool), { from: at, to: at })
  const existing = async (): Promise<string[]> => {
    const { rows } = await database.pool.query<{ name: string }>(
      'select relname as name from pg_class where relname = any($1)',
      [[monthOf(old), monthOf(recent)]],
    )
    return rows.map(({ name }) => name)
  }
  expect(await existing()).toHaveLength(2)

  const settings = settingsFor(database, retentionDays)
  const service = await (what === 'a worker'
    ? startWorker(settings, { targetKinds: ['http'], metricsPort: null })
    : startEverything(settings))
  onTestFinished(() => service.stop())
  const expected = does === 'keeps' ? [monthOf(recent)] : []
  // A worker drops it, so this polls, with a pause on the server's side.
  while ((await existing()).length > expected.length) await database.pool.query('select pg_sleep(0.02)')

  expect(await existing()).toEqual(expected)
})

test.each([
  ['7', 7],
  ['', 30],
])(
  'if CARILLON_RETENTION_DAYS is "%s", a server writes the lines of the last %s days when a schedule is paused after an outage',
  async (retentionDays, slots) => {
    const database = await createDatabase()
    onTestFinished(() => database[Symbol.asyncDispose]())
    const server = await startServer(settingsFor(database, retentionDays))
    onTestFinished(() => server.stop())
    const { schedules } = createClient(server.url, adminKey)
    const target = { kind: 'http', url: 'http://127.0.0.1:9/' } as const
    const startAt = daysAgo(29.5).toISOString()
    const { id } = await schedules.create({ name: 'Daily', cadence: { ...DAILY, startAt }, target })
    // As after an outage: no worker has begun any of thirty slots.
    await database.pool.query('update carillon.schedules set next_slot_at = $1, due_at = $1', [startAt])

    await schedules.pause(id, { reason: 'after an outage' })

    const { items } = await schedules.runs(id, { limit: 100 })
    expect(items).toHaveLength(slots)
  },
)
