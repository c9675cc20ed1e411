import { once } from 'node:events'
import { chmodSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

import { createDb, createPool, migrate, Scheduler, Worker, type EventMap, type Target } from '@carillon/core'
import { createHttpTarget } from '@carillon/http'
import { startPostgres, type EmbeddedPostgres } from '@carillon/postgres'
import { expect, onTestFinished, test } from 'vitest'

import { CALLER } from './rig.ts'

const SCHEDULES = 20

/** A target that answers at once and counts its calls. */
async function startTarget(): Promise<AsyncDisposable & { url: string; whenCalled: (count: number) => Promise<void> }> {
  const arrivals = { count: 0, next: Promise.withResolvers<void>() }
  const server = createServer((request, response) => {
    request.resume().on('end', () => {
      arrivals.count += 1
      arrivals.next.resolve()
      arrivals.next = Promise.withResolvers()
      response.end()
    })
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/`,
    whenCalled: async (count) => {
      const until = arrivals.count + count
      while (arrivals.count < until) await arrivals.next.promise
    },
    async [Symbol.asyncDispose]() {
      server.closeAllConnections()
      server.close()
    },
  }
}

/** Kills the server as a power cut would, and starts it again on the same data. */
async function crashAndRestart(postgres: EmbeddedPostgres, dataDir: string): Promise<EmbeddedPostgres> {
  const [pid] = readFileSync(join(dataDir, 'postmaster.pid'), 'utf8').split('\n')
  process.kill(Number(pid), 'SIGKILL')
  await postgres.stop()
  return startPostgres({ dataDir, port: postgres.port })
}

test(
  'if Postgres crashes under load and restarts, the worker continues and every slot has exactly one line (I2, I6)',
  { timeout: 180_000 },
  async () => {
    const folder = mkdtempSync(join(tmpdir(), 'carillon-crash-'))
    chmodSync(folder, 0o711)
    const dataDir = join(folder, 'data')
    let postgres = await startPostgres({ dataDir })
    onTestFinished(async () => {
      await postgres.stop()
      rmSync(folder, { recursive: true, force: true })
    })
    await using target = await startTarget()
    const pool = createPool({ connectionString: postgres.url })
    await migrate(pool)
    const http = createHttpTarget({ allowedHosts: ['127.0.0.1'] })
    const worker = new Worker({ databaseUrl: postgres.url, targets: [http], heartbeatMs: 1000 })
    const failures: EventMap['service.failed'][] = []
    worker.events.on('service.failed', (failure) => failures.push(failure))
    const targets = new Map<string, Target>([['http', http]])
    const scheduler = new Scheduler({ db: createDb(pool), targets }, { minimumSeconds: 1 })
    await worker.start()
    const cadence = { kind: 'interval', every: 'PT1S' }
    for (let index = 0; index < SCHEDULES; index += 1) {
      await scheduler.create(CALLER, {
        name: `${index}`,
        cadence,
        target: { kind: 'http', url: target.url, method: 'POST' },
      })
    }

    for (let crash = 0; crash < 2; crash += 1) {
      await target.whenCalled(3 * SCHEDULES)
      postgres = await crashAndRestart(postgres, dataDir)
      await target.whenCalled(1)
    }
    await target.whenCalled(3 * SCHEDULES)
    for (const { id } of await scheduler.list(CALLER)) await scheduler.pause(CALLER, id, { reason: 'enough' })
    const open = `select from carillon.runs where state in ('pending', 'running', 'retrying')`
    // No event reports the end of the last retry, so the test polls.
    while ((await pool.query(open)).rows.length > 0) await pool.query('select pg_sleep(0.05)')
    await worker.stop()

    expect(failures.length).toBeGreaterThan(0)
    const { rows } = await pool.query<{ lines: number; slots: number }>(`
    select count(*)::int as lines,
      1 + extract(epoch from max(scheduled_for) - min(scheduled_for))::int as slots
    from carillon.runs group by schedule_id`)
    expect(rows).toHaveLength(SCHEDULES)
    for (const { lines, slots } of rows) expect(lines).toBe(slots)
    const { rows: early } = await pool.query('select from carillon.runs where begun_at < scheduled_for')
    expect(early).toEqual([])
    await pool.end()
    await postgres.stop()
    rmSync(folder, { recursive: true, force: true })
  },
)
