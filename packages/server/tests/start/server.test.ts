import { createHash } from 'node:crypto'
import { existsSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'

import { createClient } from '@carillon/api'
import { migrateDown } from '@carillon/core'
import { createDatabase } from '@carillon/core/testing'
import { expect, onTestFinished, test } from 'vitest'

import { readSettings, startServer, type RunningCarillon, type Settings, type StartOptions } from '../../src/index.ts'
import { createLogger } from '../../src/start/log.ts'
import { Browser } from './browser.ts'
import { untilAllDisconnected } from './connections.ts'
import { createFolder } from './folder.ts'
import { startLocalServer } from './local-server.ts'
import { holder } from './port-holder.ts'

const adminKey = 'abcdefghijklmnopqrstuvwxyz'
const target = { kind: 'http', url: 'http://127.0.0.1:9/' } as const

async function prepare(flags: Partial<Settings> = {}) {
  const database = await createDatabase()
  onTestFinished(() => database[Symbol.asyncDispose]())
  const settings = readSettings(
    {},
    { databaseUrl: database.url, adminKey, port: 0, logLevel: 'silent', allowedTargets: ['127.0.0.1'], ...flags },
  )
  return { database, settings }
}

async function start(settings: Settings, options: StartOptions = {}): Promise<RunningCarillon> {
  const service = await startServer(settings, options)
  onTestFinished(() => service.stop())
  return service
}

test('two servers on one Postgres give the same answers', async () => {
  const { settings } = await prepare()
  const [one, two] = [await start(settings), await start(settings)]
  const made = await createClient(one.url, adminKey).schedules.create({
    name: 'Daily',
    cadence: { kind: 'cron', expression: '0 9 * * *' },
    target,
  })

  const { items } = await createClient(two.url, adminKey).schedules.list()

  expect(items.map(({ id }) => id)).toEqual([made.id])
  expect((await fetch(`${one.url}/readyz`)).status).toBe(200)
  expect(await (await fetch(`${one.url}/metrics`)).text()).toContain('pg_connection_pool_in_use{pool="server"}')
  expect(one).toMatchObject({ dataDir: null, postgresPort: null, isFirstStart: false })
})

test('a server without an admin key creates one in its data directory, and uses it again', async () => {
  const dataDir = join(createFolder(), 'data')
  const { settings } = await prepare({ adminKey: null, dataDir })

  const service = await start(settings)

  expect(service.dataDir).toBe(dataDir)
  expect(statSync(join(dataDir, 'admin.key')).mode & 0o777).toBe(0o600)
  const kept = readFileSync(join(dataDir, 'admin.key'), 'utf8').trim()
  expect((await createClient(service.url, kept).schedules.list()).items).toEqual([])
  expect(existsSync(join(dataDir, 'postgres'))).toBe(false)
})

test('a server applies the limits of its settings to projects and cadences', async () => {
  const { settings } = await prepare({ maxSchedulesPerProject: 1, minimumSeconds: 3600 })
  const { schedules } = createClient((await start(settings)).url, adminKey)
  const schedule = { name: 'Daily', cadence: { kind: 'cron', expression: '@daily' }, target } as const

  const often = schedules.create({ ...schedule, cadence: { kind: 'cron', expression: '*/30 * * * *' } })
  await expect(often).rejects.toMatchObject({ status: 400, code: 'invalid_input' })
  await schedules.create(schedule)

  await expect(schedules.create(schedule)).rejects.toMatchObject({ status: 409, code: 'quota_exceeded' })
})

test('a server that stops releases its port and its connections, and may be stopped twice', async () => {
  const { database, settings } = await prepare()
  const service = await start(settings)
  const stream = await fetch(`${service.url}/api/v1/events`, { headers: { authorization: `Bearer ${adminKey}` } })
  expect(stream.status).toBe(200)

  await Promise.all([service.stop(), service.stop()])

  await expect(fetch(service.url)).rejects.toThrow('fetch failed')
  expect(await stream.text()).toMatch(/^retry: 2000\nid: .*\n\n$/)
  await untilAllDisconnected(database)
})

test('the log has a line for a start, a request, a change and a stop, and contains no secret', async () => {
  const lines: string[] = []
  const logger = createLogger({ logLevel: 'info' }, { write: (line) => lines.push(line) })
  const { database, settings } = await prepare()
  const service = await start(settings, { logger })
  await new Browser().get(service.signInUrl ?? '')
  const { id } = await createClient(service.url, adminKey).schedules.create({
    name: 'Nightly',
    cadence: { kind: 'cron', expression: '0 3 * * *' },
    target: { ...target, payload: { card: '4000-0000-0000-0002' } },
  })
  await service.stop()

  const told = lines.map((line) => JSON.parse(line) as Record<string, unknown>)
  expect(told.map(({ event, route }) => String(event ?? route)).toSorted()).toEqual([
    '/api/v1/schedules',
    '/sign-in',
    'schedule.created',
    'service.started',
    'service.stopped',
    'service.stopping',
  ])
  expect(told).toContainEqual(
    expect.objectContaining({ event: 'schedule.created', scheduleId: id, actor: 'service:installation' }),
  )
  const secrets = [
    adminKey,
    new URL(database.url).password,
    new URL(service.signInUrl ?? '').searchParams.get('token') ?? '',
    '4000-0000-0000-0002',
  ]
  for (const secret of secrets) expect(lines.join('')).not.toContain(secret)
})

test('a server without a database does not start, and the error states what to set', async () => {
  const { settings } = await prepare({ databaseUrl: null })

  await expect(start(settings)).rejects.toMatchObject({
    code: 'database_required',
    message:
      'DATABASE_URL: expected the Postgres that servers and workers share, got nothing: ' +
      'set it, or run `carillon up` for everything in one process',
  })
})

test('an outdated schema is refused with the command that migrates it', async () => {
  const { database, settings } = await prepare()
  await migrateDown(database.pool, { to: 0 })

  await expect(start(settings)).rejects.toMatchObject({
    code: 'schema_outdated',
    message: expect.stringMatching(/ lacks 0001_.*, 0002_.*: run `carillon migrate up`$/) as string,
  })
  await untilAllDisconnected(database)
})

test('a port in use and an address of another machine are refused with their names', async () => {
  const { port } = await startLocalServer()
  const { database, settings } = await prepare({ port })

  await expect(start(settings)).rejects.toMatchObject({
    code: 'port_in_use',
    message: `127.0.0.1:${port} is in use by ${holder()}: stop it or set CARILLON_PORT`,
  })
  await expect(start({ ...settings, host: '203.0.113.7' })).rejects.toMatchObject({
    code: 'address_unavailable',
    message: 'expected an address of this machine, got 203.0.113.7: set CARILLON_HOST to one',
  })
  await untilAllDisconnected(database)
})

test('a cancelled start leaves nothing running', async () => {
  const { database, settings } = await prepare()
  const meanwhile = new AbortController()

  const starting = start(settings, { signal: meanwhile.signal })
  meanwhile.abort()

  await expect(starting).rejects.toMatchObject({ code: 'stopped' })
  await untilAllDisconnected(database)
})

test('a printed link signs in one browser once, with a cookie that no script and no other site can read', async () => {
  const { settings } = await prepare()
  const { url, signInUrl } = await start(settings)
  const link = signInUrl ?? ''
  const [browser, other] = [new Browser(), new Browser()]
  expect((await fetch(link, { method: 'HEAD' })).ok).toBe(false)

  const signedIn = await browser.get(link)
  const used = await other.get(link)

  expect(link).toMatch(new RegExp(`^${url}/sign-in\\?token=[\\w-]{43}$`))
  expect([signedIn.status, signedIn.headers.get('location')]).toEqual([303, '/'])
  expect(signedIn.headers.get('set-cookie')).toMatch(
    /^carillon_session=\d+\.[\w+/]{43}; Max-Age=43200; Path=\/; HttpOnly; SameSite=Strict$/,
  )
  expect([used.status, other.cookie]).toEqual([401, undefined])
  expect(await used.text()).toContain('Restart Carillon: it prints another one.')
  expect((await fetch(`${url}/sign-in`)).status).toBe(401)
  expect(await browser.text(url)).toContain('Sign out')
})

test('a session has the permissions of the installation, until it signs out', async () => {
  const { settings } = await prepare()
  const { url, signInUrl } = await start(settings)
  const browser = new Browser()
  await browser.get(signInUrl ?? '')

  expect(await browser.text(url)).toContain('There is no schedule yet.')
  expect(await browser.text(url)).toContain('<form method="post" action="/sign-out">')
  const signedOut = await browser.submit(`${url}/sign-out`)

  expect([signedOut.status, browser.cookie]).toEqual([303, 'carillon_session='])
  expect(await browser.text(url)).toContain('You are not signed in.')
})

test('a link or a page of another site cannot sign a browser out', async () => {
  const { settings } = await prepare()
  const { url, signInUrl } = await start(settings)
  const browser = new Browser()
  await browser.get(signInUrl ?? '')

  const followed = await browser.get(`${url}/sign-out`)
  const foreign = await browser.submit(`${url}/sign-out`, { origin: 'https://elsewhere.example' })

  expect([followed.status, followed.headers.get('allow')]).toEqual([405, 'POST'])
  expect(await foreign.json()).toMatchObject({ status: 403, code: 'forbidden' })
  expect(await browser.text(url)).toContain('Sign out')
})

test('the start page shows names of schedules as text, and runs no script', async () => {
  const { settings } = await prepare()
  const { url, signInUrl } = await start(settings)
  const { schedules } = createClient(url, adminKey)
  const cadence = { kind: 'cron', expression: '0 9 1 1 *', timezone: 'UTC' } as const
  const hostile = await schedules.create({ name: `<script>alert("a&b'c")</script>`, cadence, target })
  await schedules.run(hostile.id)
  const paused = await schedules.create({ name: 'Quarterly', cadence, target })
  await schedules.pause(paused.id, { reason: 'The <provider> is down' })
  const browser = new Browser()
  await browser.get(signInUrl ?? '')

  const response = await browser.get(url)
  const page = await response.text()

  expect(page).not.toContain('<script')
  expect(page).toContain('&lt;script&gt;alert(&quot;a&amp;b&#39;c&quot;)&lt;/script&gt;')
  expect(page).toContain('The &lt;provider&gt; is down')
  expect(page).toMatch(/<time datetime="\d{4}-01-01T09:00:00\.000Z">\d{4}-01-01 09:00:00 UTC<\/time>/)
  expect(page).toContain('<b class="pending">pending</b>')
  expect(page).toContain('The run waits for a worker with room.')
  expect(page).toContain('<b class="paused">paused</b>')
  expect(page).toContain('<td>none yet</td>')
  const style = /<style>(?<style>[^]*)<\/style>/.exec(page)?.groups?.['style'] ?? ''
  const hash = createHash('sha256').update(style).digest('base64')
  expect(response.headers.get('content-security-policy')).toContain(`default-src 'none'; style-src 'sha256-${hash}';`)
  expect(response.headers.get('content-security-policy')).toContain("form-action 'self'")
  // With a stricter policy a browser would not send the origin of the form.
  expect(response.headers.get('referrer-policy')).toBe('same-origin')
  expect(response.headers.get('cache-control')).toBe('no-store')
})
