import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { setImmediate } from 'node:timers/promises'

import { sql } from 'kysely'
import { expect, test } from 'vitest'

import { createDb } from '../../src/db/database.ts'
import type { EventMap } from '../../src/kernel/events.ts'
import { Heartbeat } from '../../src/pipeline/heartbeat.ts'
import { listWorkers, type FailingServices } from '../../src/pipeline/store/workers.ts'
import type { Target } from '../../src/ports/target.ts'
import { Scheduler } from '../../src/scheduler.ts'
import { Worker } from '../../src/worker.ts'
import { whenBlocked, whileHeld } from '../blocked-statement.ts'
import { createDatabase } from '../database.ts'
import { emptiedPipelines } from '../emptied-pipeline.ts'
import { startFaultProxy } from '../fault-proxy.ts'
import { ANY_NUMBER, CALLER, HEARTBEAT_MS, MINUTE, type Pipeline } from '../pipeline.ts'
import { held, ScriptedTarget, SUCCEEDED } from '../scripted-target.ts'

const pipelineAt = emptiedPipelines()

/** Resolves once the only worker has said that it lives, at this instant. */
async function whenBeaten({ clock, database }: Pipeline): Promise<void> {
  for (;;) {
    const { rows } = await database.pool.query('select from carillon.workers where heartbeat_at = $1', [
      clock.databaseNow(),
    ])
    if (rows.length > 0) return
  }
}

test('a heartbeat that fails once is tried again in time: one broken connection costs no lease (I12)', async () => {
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

test('a heartbeat that goes on failing is tried at a constant pace, and a lease outlasts 3 seconds without Postgres (I12)', async () => {
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
  /** Then two timers wait: that of the lease, and the heartbeat's. */
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

test('a worker says what it runs on: its version, and that of its time zone rules', async () => {
  const pipeline = await pipelineAt('2026-03-02T09:00:00Z')

  await pipeline.worker().heartbeat.runOnce()

  const { rows } = await pipeline.database.pool.query('select version, tzdata_version from carillon.workers')
  const { version } = JSON.parse(readFileSync(join(import.meta.dirname, '../../package.json'), 'utf8')) as object & {
    version: string
  }
  expect(rows).toEqual([{ version, tzdata_version: process.versions['tz'] }])
})

test('an answer that comes after the lease was let go of does not take it up again: its runs must be found (I12)', async () => {
  const pipeline = await pipelineAt('2026-03-02T09:00:30Z')
  const { clock, database, target } = pipeline
  const [worker, other] = [pipeline.worker(), pipeline.worker('other')]
  const schedule = await pipeline.create()
  target.script = held().script
  clock.advance(MINUTE / 2)
  await worker.begin()
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
  await other.keep()
  expect(await pipeline.lines(schedule)).toEqual(['09:01 succeeded'])
})

test('a heartbeat tells what fails in its worker at the moment, and that nothing does any more', async () => {
  const pipeline = await pipelineAt('2026-03-02T09:00:00Z')
  const { workerDb: db, clock } = pipeline
  const { events, lease } = pipeline.worker()
  let failing: FailingServices | null = null
  const heartbeat = new Heartbeat(
    { db, clock, events, lease, failing: () => failing, onCancel: () => undefined },
    { name: 'worker', targetKinds: ['test'], heartbeatMs: HEARTBEAT_MS },
  )
  const told = async (): Promise<unknown> => {
    await heartbeat.runOnce()
    return (await listWorkers(db, { now: clock.databaseNow() })).map((worker) => worker.failing)
  }

  expect(await told()).toEqual([null])
  failing = { loop: { failures: 3, forMs: 1750, error: 'permission denied for table runs' } }
  expect(await told()).toEqual([failing])
  failing = null
  expect(await told()).toEqual([null])
})

test('a worker whose services fail lives on, says which, and takes it back once they go well', async () => {
  await using database = await createDatabase()
  const { pool } = database
  await using worker = new Worker({ databaseUrl: database.url, targets: [new ScriptedTarget()], heartbeatMs: 200 })
  const whenTold = async (condition: string): Promise<void> => {
    while ((await pool.query(`select from carillon.workers where ${condition}`)).rowCount === 0) continue
  }
  await worker.start()

  await pool.query('revoke select on carillon.schedules from carillon_worker')
  await whenTold(`(failing -> 'pipeline' ->> 'failures')::int >= 2`)
  expect(worker.failing).toMatchObject({
    pipeline: { error: 'permission denied for table schedules', failures: expect.any(Number) as number },
  })
  await pool.query('grant select on carillon.schedules to carillon_worker')
  await whenTold(`failing -> 'pipeline' is null`)

  expect(worker.failing?.['pipeline']).toBeUndefined()
})

test('a worker that leaves is taken off the list at once, unless runs are left in its name: then rescuers find them at once', async () => {
  const pipeline = await pipelineAt('2026-03-02T09:00:30Z')
  const { clock, target, db } = pipeline
  const [idle, busy, other] = [pipeline.worker('idle'), pipeline.worker('busy'), pipeline.worker('other')]
  const schedule = await pipeline.create()
  target.script = held().script
  clock.advance(MINUTE / 2)
  await busy.begin()
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

test('forty schedules whose rows somebody holds cost a worker neither a heartbeat nor its lease', async () => {
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
  const fate = { leasesLost: 0, beats: 0 }
  worker.events.on('lease.lost', () => (fate.leasesLost += 1))

  await whileHeld({ database }, 'select from carillon.schedules for update', async () => {
    await worker.start()
    const beats = new Set<string>()
    while (fate.leasesLost === 0 && fate.beats < BEATS) {
      const { rows } = await database.pool.query<{ at: string }>(
        'select heartbeat_at::text as at from carillon.workers',
      )
      for (const { at } of rows) beats.add(at)
      fate.beats = beats.size
    }
  })
  await target.whenCalled(HELD_SCHEDULES)
  await worker.stop()

  expect(fate).toEqual({ leasesLost: 0, beats: BEATS })
})

test('connections that fall silent cost a worker no lease: its heartbeat gives up after a beat and connects anew', async () => {
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
  // More than a lease lasts.
  const later = `select from carillon.workers where heartbeat_at > '${rows[0]?.at}'::timestamptz + interval '5 seconds'`
  while (lost.length === 0 && (await database.pool.query(later)).rowCount === 0) continue
  const { rows: after } = await database.pool.query('select id from carillon.workers')
  // Whoever still waits for an answer hears that none will come.
  await proxy[Symbol.asyncDispose]()
  await worker.stop()

  expect(lost).toEqual([])
  expect(after).toEqual([{ id: rows[0]?.id }])
})
