import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, readFileSync, renameSync } from 'node:fs'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'

import { createClient, type Client } from '@carillon/api'
import { createPool } from '@carillon/core'
import { createDatabase } from '@carillon/core/testing'
import { findRunningPostgres, startPostgres } from '@carillon/postgres'
import { expect, onTestFinished, test } from 'vitest'

import {
  readSettings,
  startEverything,
  type RunningCarillon,
  type Settings,
  type StartOptions,
} from '../../src/index.ts'
import { createLogger } from '../../src/start/log.ts'
import { Browser } from './browser.ts'
import { untilAllDisconnected } from './connections.ts'
import { createFolder } from './folder.ts'
import { startLocalServer } from './local-server.ts'
import { holder } from './port-holder.ts'

const adminKey = 'abcdefghijklmnopqrstuvwxyz'
const NEW_YEAR = { kind: 'cron', expression: '0 9 1 1 *' } as const

function settingsOf(flags: Partial<Settings>): Settings {
  return readSettings({}, { port: 0, logLevel: 'silent', ...flags })
}

async function start(settings: Settings, options: StartOptions = {}): Promise<RunningCarillon> {
  const service = await startEverything(settings, options)
  onTestFinished(() => service.stop())
  return service
}

function clientOf({ url, dataDir }: RunningCarillon): Client {
  return createClient(url, readFileSync(join(dataDir ?? '', 'admin.key'), 'utf8').trim())
}

/** The database users that a running service is connected as. */
async function usersOf(dataDir: string): Promise<string[]> {
  const pool = createPool({ connectionString: findRunningPostgres(join(dataDir, 'postgres'))?.url ?? '' })
  const { rows } = await pool.query<{ usename: string }>(`
    select distinct usename from pg_stat_activity
    where backend_type = 'client backend' and pid <> pg_backend_pid()
    order by usename`)
  await pool.end()
  return rows.map(({ usename }) => usename)
}

function runningOn(dataDir: string): unknown {
  return findRunningPostgres(join(dataDir, 'postgres'))
}

test('one call starts Postgres, the API and a worker, and a second start continues with the same data', async () => {
  const dataDir = join(createFolder(), '.carillon')
  const { port, called } = await startLocalServer()
  const first = await start(settingsOf({ dataDir }))
  const client = clientOf(first)
  const browser = new Browser()
  await browser.get(first.signInUrl ?? '')

  const made = await client.schedules.create({
    name: 'First light',
    cadence: NEW_YEAR,
    target: { kind: 'http', url: `http://127.0.0.1:${port}/light` },
  })
  await client.schedules.run(made.id)

  expect(await called).toBe('/light')
  expect(first).toMatchObject({ dataDir, isFirstStart: true, postgresPort: expect.any(Number) as number })
  expect((await fetch(`${first.url}/readyz`)).status).toBe(200)
  // I9: neither the API nor the worker connects as the owner.
  expect(await usersOf(dataDir)).toEqual(['carillon_api_login', 'carillon_worker_login'])
  await first.stop()
  expect(runningOn(dataDir)).toBeUndefined()
  await expect(fetch(first.url)).rejects.toThrow('fetch failed')

  const second = await start(settingsOf({ dataDir }))
  const { items: runs } = await clientOf(second).schedules.runs(made.id)
  expect(second).toMatchObject({ dataDir, isFirstStart: false })
  expect(runs).toMatchObject([{ state: 'succeeded', attemptCount: 1 }])
  expect(await browser.text(second.url)).toContain('<b class="succeeded">succeeded</b>')
})

test('a second start that would use the port or the directory of a running Carillon is refused, and the first one continues', async () => {
  const dataDir = join(createFolder(), '.carillon')
  const running = await start(settingsOf({ dataDir }))
  const port = Number(new URL(running.url).port)

  await expect(start(settingsOf({ dataDir, port }))).rejects.toMatchObject({
    code: 'port_in_use',
    message: `127.0.0.1:${port} is in use, and a Carillon (process ${process.pid}) already runs on ${dataDir}: use that one, or stop it first`,
  })
  await expect(start(settingsOf({ dataDir }))).rejects.toMatchObject({
    code: 'data_directory_in_use',
    message:
      `a Carillon (process ${process.pid}) already runs on the data directory ${dataDir}: ` +
      'use that one, stop it, or choose another directory with CARILLON_DATA_DIR',
  })
  const elsewhere = join(createFolder(), 'other')
  await expect(start(settingsOf({ dataDir: elsewhere, port }))).rejects.toMatchObject({
    code: 'port_in_use',
    message: `127.0.0.1:${port} is in use by ${holder()}: stop it or set CARILLON_PORT`,
  })

  expect(existsSync(elsewhere)).toBe(false)
  expect((await fetch(`${running.url}/readyz`)).status).toBe(200)
})

test('an embedded Postgres that crashes is restarted, and /readyz reports it until it is back (I13)', async () => {
  const dataDir = join(createFolder(), '.carillon')
  const lines: Record<string, unknown>[] = []
  const missed = Promise.withResolvers<void>()
  const write = (line: string): void => {
    lines.push(JSON.parse(line) as Record<string, unknown>)
    if (line.includes('postgres.not_restarted')) missed.resolve()
  }
  const logger = createLogger({ logLevel: 'info' }, { write })
  const service = await start(settingsOf({ dataDir }), { logger })
  const [postgresDir, away] = [join(dataDir, 'postgres'), join(dataDir, 'away')]
  const pid = Number.parseInt(readFileSync(join(postgresDir, 'postmaster.pid'), 'utf8'), 10)

  // Postgres cannot restart without its data, so the test sees the outage.
  renameSync(postgresDir, away)
  process.kill(pid, 'SIGKILL')
  const down = await answering(service, 503, 'the embedded Postgres stopped and is being restarted')
  const alive = await fetch(`${service.url}/healthz`)
  await missed.promise
  renameSync(away, postgresDir)
  const ready = await answering(service, 200, 'ready')
  const metrics = await (await fetch(`${service.url}/metrics`)).text()
  const { items } = await clientOf(service).schedules.list()

  expect(down).not.toContain(dataDir)
  expect(JSON.parse(ready)).toEqual({
    status: 'ready',
    notices: [expect.stringMatching(/^the embedded Postgres stopped and was restarted 0 minutes ago/)],
  })
  expect(metrics).toMatch(/^postgres_restarts_total 1$/m)
  expect(metrics).toMatch(/^server_failing_parts \d$/m)
  expect(alive.status).toBe(200)
  expect(items).toEqual([])
  const told = lines.filter(({ event }) => String(event).startsWith('postgres.'))
  expect(told.map(({ event, level }) => [event, level])).toEqual([
    ['postgres.ended', 'warn'],
    ...told.slice(1, -1).map(() => ['postgres.not_restarted', 'warn']),
    ['postgres.restarted', 'info'],
  ])
  expect(told[1]).toMatchObject({
    error: { code: 'database_missing', message: expect.stringContaining(postgresDir) as string },
  })
})

/** Polls until readiness has this status and text. The test's own time limit is the bound. */
async function answering({ url }: RunningCarillon, status: number, text: string): Promise<string> {
  for (;;) {
    const response = await fetch(`${url}/readyz`)
    const body = await response.text()
    if (response.status === status && body.includes(text)) return body
  }
}

test('a start that fails or is cancelled after Postgres has started leaves no Postgres and no listener', async () => {
  const dataDir = join(createFolder(), '.carillon')
  const meanwhile = new AbortController()
  const starting = start(settingsOf({ dataDir }), { signal: meanwhile.signal })
  meanwhile.abort()
  await expect(starting).rejects.toMatchObject({ code: 'stopped' })
  expect(existsSync(join(dataDir, 'postgres/postmaster.pid'))).toBe(false)
  {
    await using postgres = await startPostgres({ dataDir: join(dataDir, 'postgres') })
    const pool = createPool({ connectionString: postgres.url })
    await pool.query(`create schema carillon; create table carillon.migrations
      as select 1 as number, '0001_of_another_house' as name, 'x' as checksum, now() as applied_at`)
    await pool.end()
  }

  await expect(start(settingsOf({ dataDir }))).rejects.toMatchObject({ code: 'schema_changed' })

  expect(existsSync(join(dataDir, 'postgres/postmaster.pid'))).toBe(false)
})

test('a start after a kill continues with the data of the killed process', async () => {
  const dataDir = join(createFolder(), '.carillon')
  const script = fileURLToPath(new URL('start-in-child.ts', import.meta.url))
  const child = spawn(process.execPath, [script], {
    env: { ...process.env, CARILLON_DATA_DIR: dataDir, CARILLON_PORT: '0', CARILLON_LOG_LEVEL: 'silent' },
    stdio: ['pipe', 'pipe', 'inherit'],
  })
  onTestFinished(() => void child.kill('SIGKILL'))
  const [url] = (await once(createInterface({ input: child.stdout }), 'line')) as [string]
  const key = readFileSync(join(dataDir, 'admin.key'), 'utf8').trim()
  const { id } = await createClient(url, key).schedules.create({
    name: 'Kept',
    cadence: NEW_YEAR,
    target: { kind: 'http', url: 'http://127.0.0.1:9/' },
  })
  const exited = once(child, 'exit')
  child.kill('SIGKILL')
  await exited

  const service = await start(settingsOf({ dataDir }))

  expect(service.isFirstStart).toBe(false)
  expect(await createClient(service.url, key).schedules.get(id)).toMatchObject({ name: 'Kept', state: 'active' })
})

test('with DATABASE_URL no Postgres is started, that database is migrated, and no target may be called by default', async () => {
  const database = await createDatabase({ content: 'empty' })
  onTestFinished(() => database[Symbol.asyncDispose]())
  const settings = settingsOf({ databaseUrl: database.url, adminKey, dataDir: join(createFolder(), 'unused') })

  const service = await start(settings)

  expect(service).toMatchObject({ dataDir: null, postgresPort: null, isFirstStart: true })
  expect(service.signInUrl).toContain('/sign-in?token=')
  expect(existsSync(settings.dataDir)).toBe(false)
  const { schedules } = createClient(service.url, adminKey)
  const target = { kind: 'http', url: 'http://127.0.0.1:9/' } as const
  await expect(schedules.create({ name: 'Loopback', cadence: NEW_YEAR, target })).rejects.toMatchObject({
    errors: [{ field: 'target.url', message: expect.stringContaining('CARILLON_ALLOWED_TARGETS') as string }],
  })
  await service.stop()
  await untilAllDisconnected(database)
})

test('a stop closes the API first, then waits for the run in progress, whose line is in the ledger', async () => {
  const database = await createDatabase()
  onTestFinished(() => database[Symbol.asyncDispose]())
  const held = Promise.withResolvers<void>()
  const { port, called } = await startLocalServer(held.promise)
  const settings = settingsOf({ databaseUrl: database.url, adminKey, allowedTargets: ['127.0.0.1'] })
  const service = await start(settings)
  const target = { kind: 'http', url: `http://127.0.0.1:${port}/slow` } as const
  const { schedules } = createClient(service.url, adminKey)
  const { id } = await schedules.create({ name: 'Slow', cadence: NEW_YEAR, target })
  await schedules.run(id)
  await called

  const stopped = service.stop()
  await refusing(service.url)
  held.resolve()
  await stopped

  const { rows } = await database.pool.query('select state from carillon.runs')
  expect(rows).toEqual([{ state: 'succeeded' }])
  await untilAllDisconnected(database)
})

/** Resolves once the port is closed. */
async function refusing(url: string): Promise<void> {
  for (;;) {
    try {
      await fetch(`${url}/readyz`)
    } catch {
      return
    }
  }
}
