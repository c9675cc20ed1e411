import { execFile } from 'node:child_process'
import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'

import { createClient, type Client, type Run } from '@carillon/api'
import { RESERVED_WORDS } from '@carillon/core'
import { createDatabase, type TestDatabase } from '@carillon/core/testing'
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest'

import {
  examine,
  migrationsOf,
  readSettings,
  startEverything,
  startServer,
  startWorker,
  type RunningCarillon,
  type Settings,
} from '../../src/index.ts'
import { startEmbedded } from './embedded-modules.ts'

const ADMIN_KEY = 'abcdefghijklmnopqrstuvwxyz'
const FOLDER = import.meta.dirname
const WORKER = fileURLToPath(new URL('worker-in-child.ts', import.meta.url))
const PACKAGES = join(FOLDER, '../../..')

let database: TestDatabase

beforeAll(async () => {
  database = await createDatabase()
})
afterAll(() => database[Symbol.asyncDispose]())

function settingsWith(variables: Record<string, string> = {}, url = database.url): Settings {
  const env = {
    DATABASE_URL: url,
    CARILLON_PORT: '0',
    CARILLON_ADMIN_KEY: ADMIN_KEY,
    CARILLON_LOG_LEVEL: 'silent',
    CARILLON_MODULES: './tally-module.ts',
    ...variables,
  }
  return readSettings(env, { folder: FOLDER })
}

async function running(start: Promise<RunningCarillon>): Promise<RunningCarillon> {
  const service = await start
  onTestFinished(() => service.stop())
  return service
}

/** Runs a new schedule of the kind `tally` once, and returns the run as it is at its end. */
async function runTally(client: Client): Promise<Run> {
  const { promise: followed, resolve } = Promise.withResolvers<void>()
  const events = client.events({ onPosition: () => resolve() })
  const first = events.next()
  await followed
  const cadence = { kind: 'once', at: '2099-01-01T00:00:00Z' } as const
  const schedule = await client.schedules.create({ name: 'counted', cadence, target: { kind: 'tally' } })
  const { id } = await client.schedules.run(schedule.id)
  for (let event = await first; event.done !== true; event = await events.next()) {
    const { value } = event
    if (value.event !== 'run' || value.data.run.id !== id || value.data.run.completedAt === null) continue
    await events.return()
    return value.data.run
  }
  throw new Error('the stream ended')
}

test('one process with a user’s module migrates it, runs its kind, and explains its reason', async () => {
  const service = await running(startEverything(settingsWith({ CARILLON_TALLY_MOST_RUNS: '1' })))
  const client = createClient(service.url, ADMIN_KEY)

  const [first, second] = [await runTally(client), await runTally(client)]

  expect(first).toMatchObject({ state: 'succeeded' })
  expect(second).toMatchObject({
    state: 'skipped',
    reason: 'tally_full',
    explanation: 'The run did not start: the project has had as many runs as it may.',
  })
  const { rows } = await database.pool.query('select tenant_id, project_id, count from carillon.tally_counts')
  expect(rows).toEqual([{ tenant_id: 'default', project_id: 'default', count: 1 }])
  await database.pool.query(`insert into carillon.tally_counts values ('acme', 'web', 7)`)
  const answer = await fetch(`${service.url}/api/v1/tally`, { headers: { authorization: `Bearer ${ADMIN_KEY}` } })
  expect([answer.status, await answer.json()]).toEqual([200, { count: 1 }])
})

test('a program that embeds the library serves a module’s kind', async () => {
  await using own = await createDatabase()
  const { worker, stop } = await startEmbedded(own.url)
  const { rows } = await own.pool.query('select target_kinds as kinds from carillon.workers')
  await stop()

  expect(rows).toEqual([{ kinds: ['tally'] }])
  expect(worker.serviceNames).toContain('tally checks')
})

test('the migrations of a user’s module are listed, applied and reverted, and the doctor makes its checks', async () => {
  await using own = await createDatabase()
  const settings = settingsWith({}, own.url)
  const migrations = migrationsOf(settings)
  const moduleCheck = async () => (await examine(settings)).find(({ name }) => name === 'module tally')

  const names = ['tally/reason tally_full', 'tally/0001_counts']
  expect((await migrations.status()).pending).toEqual(names)
  expect(await migrations.up()).toEqual({ applied: names })
  expect(await moduleCheck()).toMatchObject({ status: 'ok', message: 'counts: nothing found' })
  await own.pool.query(`insert into carillon.tally_counts values ('acme', 'web', -1)`)
  expect(await moduleCheck()).toMatchObject({
    status: 'failed',
    message: 'tally counts, below_zero: the count is below zero: count again (in acme/web)',
  })
  await expect(migrations.down(0, 'taly')).rejects.toThrow(
    '--module: expected the name of a module (http, echo, tally), got "taly"',
  )
  expect(await migrations.down(0, 'tally')).toEqual({ reverted: ['tally/0001_counts'] })
})

test('a server and a worker do not start while the migrations of a module are pending', async () => {
  await using own = await createDatabase()
  const settings = settingsWith({}, own.url)
  const outdated = {
    code: 'schema_outdated',
    message: expect.stringMatching(
      /lacks tally\/reason tally_full, tally\/0001_counts: run `carillon migrate up`$/,
    ) as string,
  }

  await expect(startServer(settings)).rejects.toMatchObject(outdated)
  await expect(startWorker(settings, { targetKinds: ['http'], metricsPort: null })).rejects.toMatchObject(outdated)
})

test('a wrong setting, an unknown variable and an unknown kind stop the start before the database is asked', async () => {
  const away = 'postgres://127.0.0.1:1/nowhere'
  const worker = (variables: Record<string, string>, targetKinds = ['tally']) =>
    startWorker(settingsWith(variables, away), { targetKinds, metricsPort: null })

  await expect(worker({ CARILLON_TALLY_MOST_RUNS: 'few' })).rejects.toMatchObject({
    code: 'settings_invalid',
    message: 'CARILLON_TALLY_MOST_RUNS: expected a whole number, got something else',
  })
  await expect(worker({ CARILLON_TALLY_MOST: '3' })).rejects.toThrow(
    'CARILLON_TALLY_MOST: expected a setting of the module tally (CARILLON_TALLY_MOST_RUNS, CARILLON_TALLY_API_TOKEN), got another name',
  )
  await expect(worker({}, ['tallly'])).rejects.toMatchObject({
    code: 'unknown_target_kind',
    message: '--targets: expected kinds of target that this Carillon knows (http, echo, tally), got "tallly"',
  })
  // The settings of a module that this worker does not load are not read.
  await expect(worker({ CARILLON_TALLY_MOST_RUNS: 'few' }, ['http'])).rejects.toMatchObject({
    code: 'database_unreachable',
  })
})

test('the doctor reports a module that cannot be loaded, and makes its other checks', async () => {
  const checks = await examine(settingsWith({ CARILLON_TALLY_MOST_RUNS: 'few' }))

  expect(checks.map(({ name }) => name)).toContain('workers')
  expect(checks.at(-1)).toEqual({
    name: 'modules',
    status: 'failed',
    message: 'CARILLON_TALLY_MOST_RUNS: expected a whole number, got something else',
  })
})

test.each([
  ['tally', /tests\/start\/tally-code\.ts$/, /modules\/http\/src\/(?!manifest\.ts)/],
  ['http', /modules\/http\/src\/target\.ts$/, /tests\/start\/tally-code\.ts$/],
])('a worker of the kind %s loads the code of that module, and none of the other', async (kind, own, other) => {
  await migrationsOf(settingsWith()).up()
  const env = {
    ...process.env,
    DATABASE_URL: database.url,
    CARILLON_MODULES: './tally-module.ts',
    CARILLON_LOG_LEVEL: 'silent',
    TARGETS: kind,
  }

  const { stdout } = await promisify(execFile)(process.execPath, [WORKER], {
    env,
    cwd: FOLDER,
  })

  const loaded = JSON.parse(stdout) as string[]
  expect(loaded.filter((url) => own.test(url))).toHaveLength(1)
  expect(loaded.filter((url) => other.test(url))).toEqual([])
})

test('no variable of Carillon itself can be taken for a setting of a module', () => {
  const files = globSync('*/src/**/*.ts', { cwd: PACKAGES }).filter((file) => !file.endsWith('module-settings.ts'))
  const text = files.map((file) => readFileSync(join(PACKAGES, file), 'utf8')).join('\n')
  const words = new Set([...text.matchAll(/\bCARILLON_([A-Z]+)/g)].map(([, word = '']) => word.toLowerCase()))

  expect(words.size).toBeGreaterThan(12)
  expect([...words].filter((word) => !RESERVED_WORDS.has(word))).toEqual([])
})
