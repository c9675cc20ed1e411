import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { setImmediate } from 'node:timers/promises'

import { expect, test } from 'vitest'

import { createDb } from '../../src/db/database.ts'
import type { EventMap } from '../../src/kernel/events.ts'
import type { FailingServices } from '../../src/kernel/failure-record.ts'
import { Heartbeat } from '../../src/pipeline/heartbeat.ts'
import { listWorkers } from '../../src/pipeline/store/workers.ts'
import type { Target } from '../../src/ports/target.ts'
import { Scheduler } from '../../src/scheduler.ts'
import { Worker } from '../../src/worker.ts'
import { whenBlocked, whileHeld } from '../blocked-statement.ts'
import { createDatabase } from '../database.ts'
import { emptiedPipelines } from '../emptied-pipeline.ts'
import { startFaultProxy } from '../fault-proxy.ts'
import { ANY_NUMBER, CALLER, HEARTBEAT_MS, MINUTE, type Pipeline } from '../pipeline.ts'
import { held, ScriptedTarget, SUCCEEDED } from '../scripted-target.ts'
import { sql } from '../sql.ts'

const pipelineAt = emptiedPipelines()

/** Resolves once the only worker has beaten at the current instant. */
async function whenBeaten({ clock, database }: Pipeline): Promise<void> {
  for (;;) {
    const { rows } = await database.pool.query('select from carillon.workers where heartbeat_at = $1', [
      clock.databaseNow(),
    ])
    if (rows.length > 0) return
  }
}

test('a heartbeat that fails once is retried before the lease expires (I12)', async () => {
  const pipeline = await pipelineAt('2026-03-02T09:00:00Z')
  const { clock, database } = pipeline
  const { heartbeat, lease, events } = pipeline.worker()
  const lost: string[] = []
  events.on('lease.lost', ({ workerId }) => lost.push(workerId))
  const failed = new Promise<EventMap['service.failed']>((resolve) => events.on('service.failed', resolve))
  heartbeat.start()
  await whenBeaten(pipeline)
  const { rows: before } = await database.pool.query('select id from carillon.workers')

  await database.pool.query('alter table carillon.workers rename to hidden')
  clock.advance(HEARTBEAT_MS)
  expect(await failed).toMatchObject({ service: 'heartbeat' })
  await database.pool.query('alter table carillon.hidden rename to workers')
  clock.advance(HEARTBEAT_MS / 5)
  await whenBeaten(pipeline)
  await heartbeat.stop()
  clock.advance(HEARTBEAT_MS)

  expect((await database.pool.query('select id from carillon.workers')).rows).toEqual(before)
  expect(lease.workerId).toBe((before as { id: string }[])[0]?.id)
  expect(lost).toEqual([])
})

test('a failing heartbeat is retried at a constant pace, so a lease survives three seconds without Postgres (I12)', async () => {
  const pipeline = await pipelineAt('2026-03-02T09:00:00Z')
  const { clock, database, workerDb: db } = pipeline
  const { events, lease } = pipeline.worker()
  const heartbeat = new Heartbeat(
    { db, clock, events, lease, failing: () => null, onCancel: () => undefined },
    { name: 'worker', targetKinds: ['test'], heartbeatMs: 2000 },
  )
  const lost: string[] = []
  events.on('lease.lost', ({ workerId }) => lost.push(workerId))
  const failedAtMs: number[] = []
  events.on('service.failed', () => failedAtMs.push(clock.monotonicMs()))
  /** Resolves once two timers wait: those of the lease and of the heartbeat. */
  const untilItSleeps = async (): Promise<void> => {
    while (clock.waiting < 2) await setImmediate()
  }
  heartbeat.start()
  await untilItSleeps()
  const { workerId } = lease

  await database.pool.query('alter table carillon.workers rename to hidden')
  clock.advance(2000)
  await untilItSleeps()
  for (let ms = 0; ms < 2800; ms += 400) {
    clock.advance(400)
    await untilItSleeps()
  }
  await database.pool.query('alter table carillon.hidden rename to workers')
  clock.advance(400)
  await untilItSleeps()
  clock.advance(400)
  await untilItSleeps()
  await heartbeat.stop()

  expect(failedAtMs).toEqual([2000, 2400, 2800, 3200, 3600, 4000, 4400, 4800])
  expect(lost).toEqual([])
  expect(lease.workerId).toBe(workerId)
})

test('the row of a worker has its version and that of its time zone rules', async () => {
  const pipeline = await pipelineAt('2026-03-02T09:00:00Z')

  await pipeline.worker().heartbeat.runOnce()

  const { rows } = await pipeline.database.pool.query('select version, tzdata_version from carillon.workers')
  const { version } = JSON.parse(readFileSync(join(import.meta.dirname, '../../package.json'), 'utf8')) as object & {
    version: string
  }
  expect(rows).toEqual([{ version, tzdata_version: process.versions['tz'] }])
})

test('a heartbeat whose answer arrives after the lease was released does not revive it, and a rescuer finds the runs (I12)', async () => {
  const pipeline = await pipelineAt('2026-03-02T09:00:30Z')
  const { clock, database, target } = pipeline
  const [worker, other] = [pipeline.worker(), pipeline.worker('other')]
  const schedule = await pipeline.create()
  target.script = held().script
  clock.advance(MINUTE / 2)
  await worker.startDue()
  await target.whenCalled(1)
  const { workerId } = worker.lease
  clock.advance(HEARTBEAT_MS)
  const client = await database.pool.connect()
  await client.query('begin')
  await client.query('select from carillon.workers for update')

  const beat = worker.heartbeat.runOnce()
  await whenBlocked(pipeline)
  clock.advance(2 * HEARTBEAT_MS - 500)
  await client.query('commit')
  client.release()
  expect(await beat).toEqual({ extended: 0 })
  await worker.loop.whenIdle()

  expect(worker.lease.workerId).not.toBe(workerId)
  await pipeline.pass(2 * HEARTBEAT_MS, worker)
  expect(await other.rescuer.runOnce()).toMatchObject({ rescued: 1 })
  target.script = () => SUCCEEDED
  await other.runDue()
  expect(await pipeline.lines(schedule)).toEqual(['09:01 succeeded'])
})

test('a heartbeat reports the services that are failing, and later that none is', async () => {
  const pipeline = await pipelineAt('2026-03-02T09:00:00Z')
  const { workerDb: db, clock } = pipeline
  const { events, lease } = pipeline.worker()
  let failing: FailingServices | null = null
  const heartbeat = new Heartbeat(
    { db, clock, events, lease, failing: () => failing, onCancel: () => undefined },
    { name: 'worker', targetKinds: ['test'], heartbeatMs: HEARTBEAT_MS },
  )
  const failingInRow = async (): Promise<unknown> => {
    await heartbeat.runOnce()
    return (await listWorkers(db, { now: clock.databaseNow() })).map((worker) => worker.failing)
  }

  expect(await failingInRow()).toEqual([null])
  failing = { loop: { failures: 3, forMs: 1750, error: 'permission denied for table runs' } }
  expect(await failingInRow()).toEqual([failing])
  failing = null
  expect(await failingInRow()).toEqual([null])
})

test('a worker with a failing service keeps running and reports the service until it works again', async () => {
  await using database = await createDatabase()
  const { pool } = database
  await using worker = new Worker({ databaseUrl: database.url, targets: [new ScriptedTarget()], heartbeatMs: 200 })
  const whenReported = async (condition: string): Promise<void> => {
    while ((await pool.query(`select from carillon.workers where ${condition}`)).rowCount === 0) continue
  }
  await worker.start()

  await pool.query('revoke select on carillon.schedules from carillon_worker')
  await whenReported(`(failing -> 'pipeline' ->> 'failures')::int >= 2`)
  expect(worker.failing).toMatchObject({
    pipeline: { error: 'permission denied for table schedules', failures: expect.any(Number) as number },
  })
  await pool.query('grant select on carillon.schedules to carillon_worker')
  await whenReported(`failing -> 'pipeline' is null`)

  expect(worker.failing?.['pipeline']).toBeUndefined()
})

test('the row of a stopped worker is removed at once; if it still holds runs, a rescuer finds them at once', async () => {
  const pipeline = await pipelineAt('2026-03-02T09:00:30Z')
  const { clock, target, db } = pipeline
  const [idle, busy, other] = [pipeline.worker('idle'), pipeline.worker('busy'), pipeline.worker('other')]
  const schedule = await pipeline.create()
  target.script = held().script
  clock.advance(MINUTE / 2)
  await busy.startDue()
  await idle.heartbeat.runOnce()
  const names = async (): Promise<unknown> =>
    (await sql<{ name: string }>`select name from carillon.workers order by name`.execute(db)).rows.map(
      ({ name }) => name,
    )

  await idle.heartbeat.leave()
  await busy.heartbeat.leave()

  expect(await names()).toEqual(['busy'])
  expect(await other.rescuer.runOnce()).toEqual({ rescued: 1, removed: 1 })
  expect(await names()).toEqual([])
  expect(await pipeline.lines(schedule)).toEqual(['09:01 retrying'])
})

const HELD_SCHEDULES = 40
const BEATS = 5

test('a worker keeps its pace of heartbeats and its lease while another transaction has locked forty due schedules', async () => {
  await using database = await createDatabase()
  const target = new ScriptedTarget()
  const scheduler = new Scheduler(
    { db: createDb(database.pool), targets: new Map<string, Target>([['test', target]]) },
    ANY_NUMBER,
  )
  const cadence = { kind: 'cron', expression: '0 0 1 1 *', timezone: 'UTC' }
  for (let index = 0; index < HELD_SCHEDULES; index += 1) {
    const { id } = await scheduler.create(CALLER, { name: `${index}`, cadence, target: { kind: 'test' } })
    await scheduler.runNow(CALLER, id)
  }
  const worker = new Worker({ databaseUrl: database.url, targets: [target], heartbeatMs: 1000 })
  const counts = { leasesLost: 0, beats: 0 }
  worker.events.on('lease.lost', () => (counts.leasesLost += 1))

  await whileHeld({ database }, 'select from carillon.schedules for update', async () => {
    await worker.start()
    const beats = new Set<string>()
    while (counts.leasesLost === 0 && counts.beats < BEATS) {
      const { rows } = await database.pool.query<{ at: string }>(
        'select heartbeat_at::text as at from carillon.workers',
      )
      for (const { at } of rows) beats.add(at)
      counts.beats = beats.size
    }
  })
  await target.whenCalled(HELD_SCHEDULES)
  await worker.stop()

  expect(counts).toEqual({ leasesLost: 0, beats: BEATS })
})

test('a worker whose connections get no answers keeps its lease: its heartbeat times out and connects again', async () => {
  await using database = await createDatabase()
  const proxy = await startFaultProxy(database.url)
  const worker = new Worker({ databaseUrl: proxy.url, targets: [new ScriptedTarget()], heartbeatMs: 1000 })
  const lost: string[] = []
  worker.events.on('lease.lost', ({ workerId }) => lost.push(workerId))
  await worker.start()
  const { rows } = await database.pool.query<{ id: string; at: string }>(
    'select id, heartbeat_at::text as at from carillon.workers',
  )

  proxy.blackhole()
  // Longer than a lease lasts.
  const later = `select from carillon.workers where heartbeat_at > '${rows[0]?.at}'::timestamptz + interval '5 seconds'`
  while (lost.length === 0 && (await database.pool.query(later)).rowCount === 0) continue
  const { rows: after } = await database.pool.query('select id from carillon.workers')
  // Ends the queries that still wait for an answer.
  await proxy[Symbol.asyncDispose]()
  await worker.stop()

  expect(lost).toEqual([])
  expect(after).toEqual([{ id: rows[0]?.id }])
})
