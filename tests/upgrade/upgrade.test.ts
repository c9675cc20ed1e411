import { execFile } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, rmSync } from 'node:fs'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { promisify } from 'node:util'

import { createDatabase } from '@carillon/core/testing'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'

import { REPOSITORY } from '../house/run-tool.ts'
import { USER_ENV } from '../packages/user-env.ts'
import { hasRelease, installRelease, previousRelease, temporaryFolder } from './previous-release.ts'
import { RunningVersion } from './running.ts'

const LIMIT_MS = 600_000
const NEW_YEAR = { kind: 'cron', expression: '0 9 1 1 *', timezone: 'Europe/Madrid' }
const NOTHING_UPGRADED =
  'The database of the previous release needed no migration, so nothing was upgraded: name an older commit in previous-release.json.'
const SKIPPED_RIGHTLY: ReadonlySet<string> = new Set(['missed', 'overlap', 'paused'])
const adminKey = 'abcdefghijklmnopqrstuvwxyz'

interface Page {
  readonly items: readonly { readonly id: string; readonly state?: string }[]
}

interface HistoryLine {
  readonly change: string
  readonly changedAt: string
}

interface Call {
  readonly path: string
  readonly key: string | undefined
  /** The slot that it is for. */
  readonly slot: string | undefined
}

/** A service that schedules call. It answers each path by its script, then with 200. */
async function startTarget(script: Readonly<Record<string, readonly number[]>> = {}) {
  const calls: Call[] = []
  const waiting: { readonly count: number; readonly path: string; readonly resolve: () => void }[] = []
  const countOf = (path: string): number => calls.filter((call) => call.path === path).length
  const answer = ({ url: path = '', headers }: IncomingMessage, response: ServerResponse): void => {
    const [key, slot] = ['idempotency-key', 'carillon-scheduled-for'].map((name) => String(headers[name]))
    calls.push({ path, key, slot })
    response.writeHead(script[path]?.[countOf(path) - 1] ?? 200).end('{}')
    for (const { count, path: awaited, resolve } of waiting) if (countOf(awaited) >= count) resolve()
  }
  const server = createServer(answer).listen(0, '127.0.0.1')
  await once(server, 'listening')
  onTestFinished(() => {
    server.closeAllConnections()
    server.close()
  })
  return {
    calls,
    url: (path: string): string => `http://127.0.0.1:${(server.address() as AddressInfo).port}${path}`,
    /** Resolves once a path was called so often. */
    called: (path: string, count: number): Promise<void> =>
      new Promise((resolve) => {
        waiting.push({ count, path, resolve })
        if (countOf(path) >= count) resolve()
      }),
  }
}

const release = previousRelease()

describe.runIf(hasRelease(release, process.env))('an upgrade from the last release', () => {
  const folder = temporaryFolder()
  const previous = join(folder, 'app/node_modules/.bin/carillon')
  const current = join(REPOSITORY, 'packages/cli/bin/carillon.js')

  beforeAll(() => installRelease(release?.commit ?? '', join(folder, 'app')), LIMIT_MS)

  afterAll(() => rmSync(folder, { recursive: true, force: true, maxRetries: 20 }))

  test('keeps schedules, ledger, keys, members and secrets, and goes on with what waits', async () => {
    const home = join(folder, 'home')
    mkdirSync(home)
    const target = await startTarget({ '/retried': [503] })
    const old = await RunningVersion.start({ command: previous, args: 'up', cwd: home, ready: 'Try this next' })
    const memberKey = await fill(old, target)
    await target.called('/retried', 1)
    const before = await everythingOf(old)
    await old.stop()

    const upgraded = await RunningVersion.start({ command: current, args: 'up', cwd: home, ready: 'Try this next' })
    const after = await everythingOf(upgraded)

    // A later version may answer with more fields, not with other values. What waited may have gone on meanwhile.
    const { retried: _, ...kept } = before
    expect(after).toMatchObject(kept)
    await target.called('/retried', 2)
    const keys = target.calls.filter(({ path }) => path === '/retried').map(({ key }) => key)
    expect(new Set(keys).size).toBe(1)
    const { items } = await upgraded.ask<Page>('GET /schedules?limit=100', undefined, memberKey)
    expect(items).toHaveLength(kept.schedules.length + 1)
    await expectHealthy(upgraded, home)
    await upgraded.stop()
  })

  test('happens under load: a worker of the last release goes on while the database is migrated, and no slot is lost or doubled', async () => {
    await using database = await createDatabase({ content: 'empty' })
    const home = join(folder, 'rolling')
    mkdirSync(home)
    const target = await startTarget()
    const env = {
      DATABASE_URL: database.url,
      CARILLON_ADMIN_KEY: adminKey,
      CARILLON_ALLOWED_TARGETS: '127.0.0.1',
      CARILLON_MIN_INTERVAL_SECONDS: '1',
    }
    const start = (command: string, args: string, ready: string): Promise<RunningVersion> =>
      RunningVersion.start({ command, args, cwd: home, env, ready })
    const cli = (command: string, ...args: string[]) =>
      promisify(execFile)(command, args, { cwd: home, env: { ...USER_ENV, ...env } })
    await cli(previous, 'migrate', 'up')
    const oldServer = await start(previous, 'server', 'API')
    const oldWorker = await start(previous, 'worker --metrics-port 0', 'Metrics')
    const every = { kind: 'interval', every: 'PT1S' }
    const ticking = await oldServer.ask<{ id: string }>('POST /schedules', {
      name: 'Ticking',
      cadence: every,
      target: { kind: 'http', url: target.url('/tick'), method: 'GET' },
    })
    await target.called('/tick', 2)

    const { stdout } = await cli(current, 'migrate', 'up', '--json')
    const { applied } = JSON.parse(stdout) as { applied: readonly string[] }
    // After a release that is tagged, this version may have no migration yet.
    expect(applied.length, NOTHING_UPGRADED).toBeGreaterThanOrEqual(release?.isTagged ? 0 : 1)
    await expectToServe(oldServer, 'Created meanwhile')
    await target.called('/tick', target.calls.length + 2)
    const worker = await start(current, 'worker --metrics-port 0', 'Metrics')
    await oldWorker.stop()
    await oldServer.stop()
    const server = await start(current, 'server', 'API')
    await target.called('/tick', target.calls.length + 2)
    await server.ask(`POST /schedules/${ticking.id}/pause`, { reason: 'enough' })

    const runs = await server.settledRuns(ticking.id)
    const slots = runs.map(({ scheduledFor }) => Date.parse(scheduledFor)).toSorted((a, b) => a - b)
    // One line for each second, none lost and none doubled.
    expect(slots.slice(1).map((slot, index) => slot - (slots[index] ?? 0))).toEqual(slots.slice(1).map(() => 1000))
    const [skipped, ran] = [true, false].map((isSkipped) =>
      runs.filter(({ state }) => (state === 'skipped') === isSkipped),
    )
    // While one worker takes over from the other, a slot may find none, and the last one may meet the pause. Its line then says so.
    expect(skipped?.filter(({ reason }) => !SKIPPED_RIGHTLY.has(reason ?? ''))).toEqual([])
    expect(ran?.filter(({ state }) => state !== 'succeeded')).toEqual([])
    // A call may be repeated after a worker was stopped, with the same key.
    const called = new Set(target.calls.map(({ slot }) => Date.parse(slot ?? '')))
    expect([...called].toSorted((a, b) => a - b)).toEqual(
      ran?.map(({ scheduledFor }) => Date.parse(scheduledFor)).toSorted((a, b) => a - b),
    )
    expect(new Set(target.calls.map(({ key }) => key)).size).toBe(called.size)
    expect((await server.askAll<{ name: string }>('/schedules')).map(({ name }) => name)).toContain('Created meanwhile')
    await expectHealthy(server, home)
    await worker.stop()
    await server.stop()
  })

  /** Answers a read and a write. */
  async function expectToServe(running: RunningVersion, name: string): Promise<void> {
    const target = { kind: 'http', url: 'http://127.0.0.1:9/', method: 'GET' }
    const { id } = await running.ask<{ id: string }>('POST /schedules', { name, cadence: NEW_YEAR, target })
    expect((await running.askAll<{ id: string }>('/schedules')).map((schedule) => schedule.id)).toContain(id)
  }

  async function expectHealthy(running: RunningVersion, cwd: string): Promise<void> {
    const run = (...args: string[]) => promisify(execFile)(current, args, { cwd, env: running.env })
    const { stdout } = await run('doctor', '--json')
    const { checks } = JSON.parse(stdout) as { checks: { name: string; status: string; message: string }[] }
    expect(checks.filter(({ status }) => status === 'failed')).toEqual([])
    const audit = JSON.parse((await run('audit', '--run', '--json')).stdout) as { findings: unknown }
    expect(audit).toMatchObject({ findings: [] })
  }
})

type Target = Awaited<ReturnType<typeof startTarget>>

/**
 * Stores one of everything that a user can store.
 * @returns the API key of a member
 */
async function fill(old: RunningVersion, { url, called }: Target): Promise<string> {
  const http = (path: string, more: object = {}): object => ({ kind: 'http', url: url(path), ...more })
  const create = (name: string, cadence: object, target: object, more: object = {}): Promise<{ id: string }> =>
    old.ask('POST /schedules', { name, cadence, target, ...more })
  await old.ask('PUT /secrets/token', { value: 'a secret value' })
  await old.ask('PUT /members/user:alice', { role: 'member' })
  await old.ask('POST /grants', { subject: 'user:alice', scopes: ['http:dispatch:127.0.0.1:9'] })
  await create('Cron', NEW_YEAR, http('/cron', { payload: { list: 'a' } }))
  await create(
    'Rule',
    { kind: 'rrule', rule: 'FREQ=YEARLY', start: '2030-01-05T09:00:00', timezone: 'UTC' },
    http('/rule'),
  )
  await create(
    'Frequency',
    { kind: 'frequency', frequency: 'biweekly', dayOfWeek: 1, timeOfDay: '09:00', timezone: 'UTC' },
    http('/frequency'),
  )
  await create(
    'Interval',
    { kind: 'interval', every: 'P30D' },
    http('/interval', { auth: { kind: 'bearer', secretRef: 'token' } }),
  )
  const paused = await create('Paused', NEW_YEAR, http('/paused'))
  await old.ask(`POST /schedules/${paused.id}/pause`, { reason: 'on holiday' })
  const ran = await create('Ran', NEW_YEAR, http('/ran'))
  await old.ask(`POST /schedules/${ran.id}/run`)
  await called('/ran', 1)
  await old.settledRuns(ran.id)
  await create('Retried', { kind: 'once', at: new Date(Date.now() + 500).toISOString() }, http('/retried'), {
    policy: { retry: { maxAttempts: 5, baseSeconds: 8, capSeconds: 8 } },
  })
  const { key } = await old.ask<{ key: string }>('POST /keys', {
    project: 'default',
    subject: 'user:alice',
    role: 'member',
  })
  return key
}

/** What a client can read, apart from what changes by itself. */
async function everythingOf(running: RunningVersion) {
  const { items } = await running.ask<{ items: { id: string; name: string }[] }>('GET /schedules?limit=100')
  const retried = items.find(({ name }) => name === 'Retried')?.id
  const settled = items.filter(({ id }) => id !== retried)
  const ofEach = <Answer>(path: string) =>
    Promise.all(settled.map(({ id }) => running.ask<Answer>(`GET /schedules/${id}/${path}`)))
  const histories = await ofEach<{ items: readonly HistoryLine[] }>('history')
  const runs = await ofEach<{ items: readonly object[] }>('runs')
  return {
    retried,
    schedules: settled,
    // The API of a version before migration 0013 has the earliest change first.
    history: histories.map(({ items: lines }) => lines.toSorted((a, b) => a.changedAt.localeCompare(b.changedAt))),
    // A later version may explain a state in other words.
    runs: runs.map(({ items: lines }) => lines.map((line) => ({ ...line, explanation: undefined }))),
    grants: await running.ask('GET /grants?limit=100'),
    secrets: await running.ask('GET /secrets'),
    members: await running.ask('GET /members'),
    keys: await running.ask('GET /keys'),
  }
}
