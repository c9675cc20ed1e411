import { createDb, Events, migrateDown, Scheduler, type Target } from '@carillon/core'
import { createDatabase, type TestDatabase } from '@carillon/core/testing'
import { createHttpTarget } from '@carillon/http'
import { expect, onTestFinished, test } from 'vitest'

import { createLogger, logEvents } from '../../src/start/log.ts'
import { examine } from '../../src/start/maintenance.ts'
import type { RunningCarillon } from '../../src/start/service.ts'
import { readSettings, type Settings } from '../../src/start/settings.ts'
import { serveWorkerProbes } from '../../src/start/worker-probes.ts'
import { startWorker, type StartWorkerOptions } from '../../src/start/worker.ts'
import { untilAllDisconnected } from './connections.ts'
import { startLocalServer } from './local-server.ts'
import { holder } from './port-holder.ts'

async function prepare(): Promise<{ database: TestDatabase; settings: Settings }> {
  const database = await createDatabase()
  onTestFinished(() => database[Symbol.asyncDispose]())
  return { database, settings: settingsFor(database.url) }
}

function settingsFor(databaseUrl: string | null): Settings {
  return readSettings({}, { databaseUrl, allowedTargets: ['127.0.0.1'], logLevel: 'silent' })
}

async function start(settings: Settings, options: Partial<StartWorkerOptions> = {}): Promise<RunningCarillon> {
  const worker = await startWorker(settings, { targetKinds: ['http'], metricsPort: 0, ...options })
  onTestFinished(() => worker.stop())
  return worker
}

async function get(url: string): Promise<{ status: number; body: string }> {
  const response = await fetch(url)
  return { status: response.status, body: await response.text() }
}

test('a worker calls the targets of waiting runs, and serves its probes and metrics on its own port', async () => {
  const { database, settings } = await prepare()
  const { port, called } = await startLocalServer()
  const http: Target = createHttpTarget({ allowedHosts: ['127.0.0.1'] })
  const scheduler = new Scheduler({ db: createDb(database.pool), targets: new Map([['http', http]]) })

  const worker = await start(settings, { name: 'one', concurrency: 3 })
  const caller = { tenantId: 'default', projectId: 'default', subject: 'user:ada' }
  const { id } = await scheduler.create(caller, {
    name: 'New Year',
    cadence: { kind: 'cron', expression: '0 9 1 1 *' },
    target: { kind: 'http', url: `http://127.0.0.1:${port}/new-year` },
  })
  await scheduler.runNow(caller, id)

  expect(await called).toBe('/new-year')
  expect(await get(`${worker.url}/healthz`)).toEqual({ status: 200, body: '{"status":"ok"}\n' })
  expect(await get(`${worker.url}/readyz`)).toEqual({ status: 200, body: '{"status":"ready"}\n' })
  expect((await get(`${worker.url}/metrics?x=y`)).body).toContain('# TYPE scheduler_worker_in_flight gauge')
  expect(await get(`${worker.url}/`)).toEqual({ status: 404, body: '{"status":"not found"}\n' })
  expect((await fetch(`${worker.url}/metrics`, { method: 'POST' })).status).toBe(405)
  expect((await fetch(`${worker.url}/readyz`, { method: 'HEAD' })).status).toBe(200)
  expect(worker).toMatchObject({ signInUrl: null, dataDir: null, postgresPort: null, isFirstStart: false })
})

test('a failing metrics request is reported and answered with 500, and the worker continues', async () => {
  const { lines, logger } = createLog()
  const events = new Events()
  logEvents(events, logger)
  const readiness = { problems: () => Promise.reject(new Error('no readiness')), stopping: () => undefined }
  const metrics = { renderMetrics: () => Promise.reject(new Error('no metrics')) }
  const parts = { events, readiness, metrics } as unknown as Parameters<typeof serveWorkerProbes>[2]
  await using ends = new AsyncDisposableStack()
  const start = { defer: (end: () => Promise<void> | void) => ends.defer(end), checkpoint: () => undefined }
  const url = await serveWorkerProbes(start, { host: '127.0.0.1', port: 0, remedy: '' }, parts)

  const answers = [await get(`${url}/metrics`), await get(`${url}/readyz`), await get(`${url}/healthz`)]

  expect(answers.map(({ status }) => status)).toEqual([500, 500, 200])
  expect(answers[0]?.body).toBe('{"status":"failed"}\n')
  expect(lines).toMatchObject([
    { event: 'service.failed', service: 'health', error: { message: 'no metrics' } },
    { event: 'service.failed', service: 'health', error: { message: 'no readiness' } },
  ])
})

function createLog() {
  const lines: Record<string, unknown>[] = []
  const write = (line: string): void => void lines.push(JSON.parse(line) as Record<string, unknown>)
  return { lines, logger: createLogger({ logLevel: 'warn' }, { write }) }
}

test('the name of a worker is shown by doctor and in pg_stat_activity, and neither in its log nor in the ledger', async () => {
  const { database, settings } = await prepare()
  const { port, called } = await startLocalServer()
  const lines: string[] = []
  const logger = createLogger({ logLevel: 'debug' }, { write: (line) => void lines.push(line) })
  const http: Target = createHttpTarget({ allowedHosts: ['127.0.0.1'] })
  const scheduler = new Scheduler({ db: createDb(database.pool), targets: new Map([['http', http]]) })
  const worker = await start(settings, { name: 'barrel-7', logger })
  const caller = { tenantId: 'default', projectId: 'default', subject: 'user:ada' }
  const { id } = await scheduler.create(caller, {
    name: 'New Year',
    cadence: { kind: 'cron', expression: '0 9 1 1 *' },
    target: { kind: 'http', url: `http://127.0.0.1:${port}/new-year` },
  })
  const { id: runId } = await scheduler.runNow(caller, id)
  await called

  const check = (await examine(settings)).find(({ name }) => name === 'workers')
  const { rows: connections } = await database.pool.query<{ name: string }>(
    `select distinct application_name as name from pg_stat_activity
     where datname = current_database() and application_name like '%barrel-7%'`,
  )
  await worker.stop()

  expect(check?.detail).toMatchObject({ workers: [{ name: 'barrel-7' }] })
  expect(connections.map(({ name }) => name)).toContain('carillon barrel-7')
  expect(lines.length).toBeGreaterThan(0)
  expect(lines.filter((line) => line.includes('barrel-7'))).toEqual([])
  expect(JSON.stringify(await scheduler.getRun(caller, runId))).not.toContain('barrel-7')
})

test('a worker that stops leaves the list of workers, releases its port and its connections, and may be stopped twice', async () => {
  const { database, settings } = await prepare()
  const worker = await start(settings)
  const { rowCount: before } = await database.pool.query('select from carillon.workers')

  await Promise.all([worker.stop(), worker.stop()])
  await worker.stop()

  const { rowCount: after } = await database.pool.query('select from carillon.workers')
  expect([before, after]).toEqual([1, 0])
  await expect(fetch(worker.url)).rejects.toThrow('fetch failed')
  await untilAllDisconnected(database)
})

test('a worker can run without a port', async () => {
  const { settings } = await prepare()

  expect(await start(settings, { metricsPort: null })).toMatchObject({ url: '' })
})

test('a worker on a port in use is refused with a remedy, and leaves no connection behind', async () => {
  const { database, settings } = await prepare()
  const { port } = await startLocalServer()

  await expect(start(settings, { metricsPort: port })).rejects.toMatchObject({
    name: 'OperatorError',
    code: 'port_in_use',
    message: `127.0.0.1:${port} is in use by ${holder()}: stop it or choose another with --metrics-port`,
  })
  await untilAllDisconnected(database)
})

test('an unknown kind of target is refused with the list of known kinds', async () => {
  const { settings } = await prepare()
  const expected = '--targets: expected kinds of target that this Carillon knows (http, echo)'

  await expect(start(settings, { targetKinds: ['http', 'fax'] })).rejects.toMatchObject({
    code: 'unknown_target_kind',
    message: `${expected}, got "fax"`,
  })
  await expect(start(settings, { targetKinds: ['constructor'] })).rejects.toMatchObject({
    code: 'unknown_target_kind',
  })
  await expect(start(settings, { targetKinds: [] })).rejects.toMatchObject({ message: `${expected}, got none` })
})

test.each([
  ['concurrency', 0, '--concurrency: expected a whole number from 1 to 100000, got 0'],
  ['metricsPort', 65_536, '--metrics-port: expected a whole number from 0 to 65535, got 65536'],
])('a %s of %s is refused with the name of its flag', async (option, value, message) => {
  await expect(start(settingsFor('postgres://nowhere.invalid/x'), { [option]: value })).rejects.toMatchObject({
    code: 'settings_invalid',
    message,
  })
})

test('a worker without a database does not start, and the error states what to set', async () => {
  await expect(start(settingsFor(null))).rejects.toMatchObject({
    code: 'database_required',
    message:
      'DATABASE_URL: expected the Postgres that servers and workers share, got nothing: ' +
      'set it, or run `carillon up` for everything in one process',
  })
})

test('an outdated schema is refused with the command that migrates it, and nothing is changed', async () => {
  const { database, settings } = await prepare()
  await migrateDown(database.pool, { to: 1 })

  await expect(start(settings)).rejects.toMatchObject({
    code: 'schema_outdated',
    message: expect.stringMatching(
      new RegExp(`^the database ${database.name} at 127\\.0\\.0\\.1:\\d+ lacks 0002_.*: run \`carillon migrate up\`$`),
    ) as string,
  })
  await untilAllDisconnected(database)
})

test('a schema that is too new is refused', async () => {
  const { database, settings } = await prepare()
  await database.pool.query(
    `insert into carillon.migrations (number, name, checksum, applied_at)
     select max(number) + 1, '9999_later', 'x', now() from carillon.migrations`,
  )

  await expect(start(settings)).rejects.toMatchObject({
    code: 'schema_too_new',
    message:
      'the database has applied migration 9999_later, which this Carillon does not know: run the version that applied it, or a later one',
  })
})

test('an error about an unreachable database names it without the password', async () => {
  const { database } = await prepare()
  const { port } = new URL(database.url)
  const changed = (change: (url: URL) => void): Settings => {
    const url = new URL(database.url)
    change(url)
    return settingsFor(url.href)
  }
  const refusal = (message: string): object => ({ name: 'OperatorError', code: 'database_unreachable', message })

  await expect(start(changed((url) => (url.port = '1')))).rejects.toMatchObject(
    refusal(
      `the database ${database.name} at 127.0.0.1:1 cannot be reached: connect ECONNREFUSED 127.0.0.1:1; check DATABASE_URL`,
    ),
  )
  await expect(start(changed((url) => (url.password = 'hunter2')))).rejects.toMatchObject(
    refusal(
      `the database ${database.name} at 127.0.0.1:${port} cannot be reached: ` +
        'password authentication failed for user "postgres"; check DATABASE_URL',
    ),
  )
  await expect(start(changed((url) => (url.pathname = '/nothing')))).rejects.toMatchObject(
    refusal(
      `the database nothing at 127.0.0.1:${port} cannot be reached: database "nothing" does not exist; check DATABASE_URL`,
    ),
  )
  await expect(start(settingsFor('postgres://ada:hunter2@no-such-host.invalid'))).rejects.toMatchObject(
    refusal(
      expect.stringMatching(
        /^the database ada at no-such-host\.invalid:5432 cannot be reached: getaddrinfo E\w+ no-such-host\.invalid; check DATABASE_URL$/,
      ) as string,
    ),
  )
})

test('a cancelled start leaves nothing running', async () => {
  const { database, settings } = await prepare()
  const calledOff = AbortSignal.abort()
  const meanwhile = new AbortController()

  await expect(start(settings, { signal: calledOff })).rejects.toMatchObject({ code: 'stopped' })
  const starting = start(settings, { signal: meanwhile.signal })
  meanwhile.abort()

  await expect(starting).rejects.toMatchObject({
    code: 'stopped',
    message: 'stopped while starting: nothing is left running',
  })
  await untilAllDisconnected(database)
})
