import { execFile } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, existsSync, mkdtempSync, rmSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { promisify } from 'node:util'

import { createClient } from '@carillon/api'
import { createDatabase } from '@carillon/core/testing'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'

import { CarillonProcess } from './carillon-process.ts'

const ADMIN_KEY = 'carillon_admin_of_the_process_tests'

let folder: string

beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'carillon-up-'))
  // Under root, Postgres runs as another user, which needs access to the data.
  chmodSync(folder, 0o711)
})

afterAll(() => rmSync(folder, { recursive: true, force: true }))

function run(command: string, args: readonly string[], env: Record<string, string> = {}): CarillonProcess {
  return new CarillonProcess([...command.split(' '), ...args], { cwd: folder, env })
}

/** Runs the printed command in another shell, as a user would. The tests have no npx on their path. */
async function paste(line: string): Promise<string> {
  const path = `${dirname(process.execPath)}:${process.env['PATH'] ?? ''}`
  const binary = join(import.meta.dirname, '../../packages/cli/bin/carillon.js')
  const command = line.replace('npx carillon', `node ${binary}`)
  const { stdout } = await promisify(execFile)('bash', ['-c', command], { cwd: folder, env: { PATH: path } })
  return stdout
}

describe('carillon up', () => {
  test('starts everything, prints a next command that works unchanged, and keeps the data for the next start', async () => {
    const first = run('up', ['--port', '0'])
    const greeting = await first.shown(/npx carillon .*\n/)
    const [next = ''] = /^ +(.*npx carillon .*)$/m.exec(greeting)?.slice(1) ?? []
    const made = await paste(`${next} --wait`)
    const stopped = await first.stop('SIGINT')
    const second = run('up', ['--port', '0', '--json'])
    const { url, isFirstStart } = JSON.parse(await second.shown(/\n/)) as { url: string; isFirstStart: boolean }
    const list = await run('schedules list', [], { CARILLON_URL: url }).ended
    const terminated = await second.stop('SIGTERM')

    expect(greeting).toMatch(/^Carillon \d+\.\d+\.\d+\n\n {2}API +http:\/\/127\.0\.0\.1:\d+\/api\/v1\n {2}Docs /)
    expect(greeting).toMatch(
      /Sign in +http:\S+ \(works once\)\n {2}Data +\.carillon \(new\)\n {2}Key +\.carillon\/admin\.key\n/,
    )
    expect(made).toMatch(/State +succeeded/)
    expect(stopped).toMatchObject({ exitCode: 0, stderr: expect.stringMatching(/stopping…\n/) as string })
    expect(existsSync(join(folder, '.carillon/admin.key'))).toBe(true)
    expect(isFirstStart).toBe(false)
    expect(list.stdout).toMatch(/^First light +completed /m)
    expect(terminated.exitCode).toBe(0)
  }, 120_000)
})

test('a second interrupt ends the program without waiting for the runs in progress', async () => {
  await using database = await createDatabase()
  const held = createServer(() => undefined).listen(0, '127.0.0.1')
  await once(held, 'listening')
  const env = { DATABASE_URL: database.url, CARILLON_ADMIN_KEY: ADMIN_KEY, CARILLON_ALLOWED_TARGETS: '127.0.0.1' }
  const up = run('up', ['--port', '0', '--json'], env)
  const { url } = JSON.parse(await up.shown(/\n/)) as { url: string }
  const called = once(held, 'request')
  const target = `http://127.0.0.1:${(held.address() as AddressInfo).port}/`
  const client = createClient(url, ADMIN_KEY)
  const cadence = { kind: 'cron' as const, expression: '@yearly' }
  const { id } = await client.schedules.create({ name: 'Endless', cadence, target: { kind: 'http', url: target } })
  await client.schedules.run(id)
  await called

  up.child.kill('SIGINT')
  await up.shown(/stopping…/, 'stderr')
  // The user keeps pressing Ctrl-C. Signals right after the first one count as the same interrupt.
  const pressing = setInterval(() => up.child.kill('SIGINT'), 100)
  const { exitCode } = await up.ended
  clearInterval(pressing)

  expect(exitCode).toBe(130)
  held.close()
  held.closeAllConnections()
}, 60_000)

describe('server and worker', () => {
  test('work together on one database', async () => {
    await using database = await createDatabase()
    const env = { DATABASE_URL: database.url, CARILLON_ADMIN_KEY: ADMIN_KEY, CARILLON_ALLOWED_TARGETS: '127.0.0.1' }
    const server = run('server', ['--port', '0', '--json'], env)
    const worker = run('worker', ['--targets', 'http', '--concurrency', '5', '--metrics-port', '0'], env)
    const { url } = JSON.parse(await server.shown(/\n/)) as { url: string }
    const printed = await worker.shown(/Metrics .*\n/)
    const [, health = ''] = /^Health +(\S+)$/m.exec(printed) ?? []

    const healthy = await fetch(health)
    const made = await run(
      'schedules create',
      ['Shared', '--in', '1s', '--url', `${url}/healthz`, '--method', 'GET', '--wait'],
      {
        CARILLON_URL: url,
        CARILLON_API_KEY: ADMIN_KEY,
      },
    ).ended
    const ended = await Promise.all([server.stop(), worker.stop()])

    expect(printed).toMatch(/^Targets {2}http\n/)
    expect(healthy.status).toBe(200)
    expect(made).toMatchObject({ exitCode: 0, stdout: expect.stringMatching(/State +succeeded/) as string })
    expect(ended.map(({ exitCode }) => exitCode)).toEqual([0, 0])
  }, 60_000)

  test.each(['server', 'worker'])('%s without a database is refused', async (command) => {
    const { stdout, stderr, exitCode } = await run(command, ['--json']).ended

    expect({ stdout, exitCode }).toEqual({ stdout: '', exitCode: 1 })
    expect(JSON.parse(stderr)).toMatchObject({ error: { code: 'database_required' } })
  })
})

describe('the launcher', () => {
  /** Makes only the launcher see an old version of Node. */
  const OLD = `data:text/javascript,if (process.argv[1]?.endsWith('carillon.js')) Object.defineProperty(process, 'versions', { value: { ...process.versions, node: '20.1.0' } })`
  const env = { NODE_OPTIONS: `--import=${encodeURI(OLD)}` }

  test('starts the Node that npm installed if it runs on an old Node, and passes on its output and exit code', async () => {
    const [version, usage] = await Promise.all([run('--version', [], env).ended, run('schedules', [], env).ended])

    expect(version).toEqual({ stdout: expect.stringMatching(/^carillon \d/) as string, stderr: '', exitCode: 0 })
    expect(usage.exitCode).toBe(2)
  })
})
