import { once } from 'node:events'
import { chmodSync, mkdtempSync, readdirSync, readFileSync, readlinkSync, rmSync } from 'node:fs'
import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setImmediate } from 'node:timers/promises'

import { createClient, type Client } from '@carillon/api'
import { describe, expect, onTestFinished, test } from 'vitest'

import { CarillonProcess } from '../cli/carillon-process.ts'
import { commandOf, processesWith } from './npm-start.ts'

const LIMIT_MS = 120_000
const YEARLY = { kind: 'cron', expression: '@yearly' } as const
const OVER: readonly string[] = ['succeeded', 'failed', 'cancelled', 'skipped']

/** A target that holds its answers until the test lets it answer. */
async function startTarget() {
  const held: ServerResponse[] = []
  const called = Promise.withResolvers<void>()
  let isHolding = true
  const server = createServer((request, response) => {
    request.resume().on('end', () => {
      if (isHolding) held.push(response)
      else response.end()
      called.resolve()
    })
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  onTestFinished(() => {
    server.closeAllConnections()
    server.close()
  })
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/`,
    called: called.promise,
    /** Answers the held requests, and all later ones at once. */
    answer: () => {
      isHolding = false
      for (const response of held) response.end()
    },
  }
}

/** Starts `carillon up` with a Postgres of its own, in a folder that only this test uses. Resolves once it is ready. */
async function startUp() {
  const folder = mkdtempSync(join(tmpdir(), 'carillon-crash-'))
  // If root runs the tests, Postgres runs as another user, which must be able to reach its data.
  chmodSync(folder, 0o711)
  const dataDir = join(folder, '.carillon')
  const service = new CarillonProcess(['up', '--port', '0', '--json'], {
    cwd: folder,
    env: { CARILLON_DATA_DIR: dataDir },
  })
  onTestFinished(async () => {
    await service.stop('SIGKILL')
    while (processesOf(dataDir).length > 0) await setImmediate()
    rmSync(folder, { recursive: true, force: true, maxRetries: 20 })
  })
  const { url } = JSON.parse(await service.shown(/\n/)) as { url: string }
  const key = readFileSync(join(dataDir, 'admin.key'), 'utf8').trim()
  return { service, dataDir, url, client: createClient(url, key) }
}

/** The process id of the server. Undefined while there is no server. Postgres may remove the file at any moment. */
function serverOf(dataDir: string): number | undefined {
  try {
    const pid = Number.parseInt(readFileSync(join(dataDir, 'postgres/postmaster.pid'), 'utf8'), 10)
    return Number.isNaN(pid) ? undefined : pid
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined
    throw error
  }
}

function killServer(dataDir: string): number {
  const pid = serverOf(dataDir) ?? 0
  process.kill(pid, 'SIGKILL')
  return pid
}

/** The processes that work in the data folder, and those with it in their environment. */
function processesOf(dataDir: string): number[] {
  const working = readdirSync('/proc').filter((name) => /^\d+$/.test(name) && cwdOf(name).startsWith(dataDir))
  return [...new Set([...working.map(Number), ...processesWith(dataDir)])]
}

function cwdOf(pid: string): string {
  try {
    return readlinkSync(`/proc/${pid}/cwd`)
  } catch {
    return ''
  }
}

/** Each request is a round trip. The test's own time limit is the bound. */
async function untilReady(url: string): Promise<void> {
  while ((await fetch(`${url}/readyz`)).status !== 200);
}

/** Resolves once the service has logged this many completed restarts. */
function restarts(service: CarillonProcess, count: number): Promise<string> {
  return service.shown(new RegExp(`(postgres\\.restarted[^]*){${count}}`), 'stderr')
}

/** The final state of a run. Right after its restart a database may still refuse requests. */
async function outcomeOf(client: Client, id: string): Promise<string> {
  for (;;) {
    const run = await client.runs.get(id).catch(() => undefined)
    if (run !== undefined && OVER.includes(run.state)) return run.state
  }
}

describe.runIf(process.platform === 'linux')('carillon up with a Postgres of its own', () => {
  test(
    'survives when Postgres is killed, killed again, and killed during its restart, and every run ends (I13)',
    async () => {
      const [{ service, dataDir, url, client }, target] = [await startUp(), await startTarget()]
      const { id } = await client.schedules.create({
        name: 'Survivor',
        cadence: YEARLY,
        target: { kind: 'http', url: target.url },
      })
      const { pid } = service.child

      // This run is in progress while Postgres is killed.
      const first = await client.schedules.run(id)
      await target.called
      killServer(dataDir)
      await restarts(service, 1)
      target.answer()
      const firstOutcome = await outcomeOf(client, first.id)
      const killed = killServer(dataDir)
      // The lock file of the next server exists long before it is ready.
      while ([undefined, killed].includes(serverOf(dataDir))) await setImmediate()
      killServer(dataDir)
      await restarts(service, 2)
      await untilReady(url)
      const second = await client.schedules.run(id)
      const secondOutcome = await outcomeOf(client, second.id)
      const ended = await service.stop('SIGTERM')

      expect([firstOutcome, secondOutcome]).toEqual(['succeeded', 'succeeded'])
      expect({ pid: service.child.pid, exitCode: ended.exitCode }).toEqual({ pid, exitCode: 0 })
      expect(ended.stderr).not.toContain('process.unhandled_rejection')
      expect(processesOf(dataDir).map(commandOf)).toEqual([])
    },
    LIMIT_MS,
  )

  test(
    'survives the death of one Postgres process, after which Postgres closes all connections',
    async () => {
      const [{ service, dataDir, url, client }, target] = [await startUp(), await startTarget()]
      target.answer()
      const { id } = await client.schedules.create({
        name: 'Survivor',
        cadence: YEARLY,
        target: { kind: 'http', url: target.url },
      })
      const backend = processesOf(dataDir).find((pid) => commandOf(pid).startsWith('postgres: carillon_worker_login'))

      process.kill(backend ?? 0, 'SIGKILL')
      await service.shown(/Connection terminated unexpectedly/, 'stderr')
      await untilReady(url)
      const run = await client.schedules.run(id)
      const outcome = await outcomeOf(client, run.id)
      const ended = await service.stop('SIGTERM')

      expect(outcome).toBe('succeeded')
      expect(ended.exitCode).toBe(0)
      // Postgres recovers from this by itself.
      expect(ended.stderr).not.toContain('postgres.ended')
    },
    LIMIT_MS,
  )

  test.each([
    ['before the kill is noticed', async () => undefined],
    [
      'while the next server waits for its turn',
      async ({ service }: Stopping) => void (await service.shown(/postgres\.ended/, 'stderr')),
    ],
    [
      'while the next server starts',
      async ({ dataDir, killed }: Stopping) => {
        while ([undefined, killed].includes(serverOf(dataDir))) await setImmediate()
      },
    ],
  ])(
    'stops in order and leaves no process if it gets SIGTERM %s',
    async (_moment, until) => {
      const { service, dataDir } = await startUp()

      const killed = killServer(dataDir)
      await until({ service, dataDir, killed })
      const ended = await service.stop('SIGTERM')

      expect(ended.exitCode).toBe(0)
      expect(processesOf(dataDir).map(commandOf)).toEqual([])
    },
    LIMIT_MS,
  )
})

interface Stopping {
  readonly service: CarillonProcess
  readonly dataDir: string
  readonly killed: number
}
