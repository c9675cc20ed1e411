import { expect, test } from 'vitest'

import { GrantExpiryWarnings } from '../../src/access/grant-expiry-warnings.ts'
import { Auditor } from '../../src/audit/auditor.ts'
import { CadenceCache } from '../../src/cadences/cadence-cache.ts'
import { createDb } from '../../src/db/database.ts'
import { Listener } from '../../src/db/notify.ts'
import { createPool } from '../../src/db/pool.ts'
import { Events, type EventMap } from '../../src/kernel/events.ts'
import type { Service } from '../../src/kernel/service.ts'
import { BacklogWriter } from '../../src/ledger/backlogs.ts'
import { GaugeCollector } from '../../src/maintenance/gauge-collector.ts'
import { Upkeep } from '../../src/maintenance/upkeep.ts'
import { InDoubtCheck } from '../../src/pipeline/in-doubt-commits.ts'
import { Worker } from '../../src/worker.ts'
import { whenBlocked, whileHeld } from '../blocked-statement.ts'
import { emptiedPipelines } from '../emptied-pipeline.ts'
import { pipelineOf } from '../pipeline-parts.ts'
import { CALLER, DAY, HEARTBEAT_MS, MINUTE, type Pipeline, type TestWorker } from '../pipeline.ts'
import { FAIL, held, heldEach, SUCCEEDED } from '../scripted-target.ts'
import { listWaits } from '../waits.ts'

const pipelineAt = emptiedPipelines()
const GRACE_MS = 20_000
/** The services of a real worker: one that is missing in `servicesOf` fails a test. This worker is never started, so it never connects. */
const SERVICE_NAMES = new Worker({ databaseUrl: 'postgres://localhost/none', targets: [] }).serviceNames

test('an attempt that ends within the grace period is settled like any other', async () => {
  const pipeline = await pipelineAt('2026-03-02T09:00:00Z')
  const { clock, target } = pipeline
  const { script, answer } = held()
  target.script = script
  const schedule = await pipeline.create()
  const worker = pipeline.worker()
  clock.advance(MINUTE)
  await worker.startDue()

  const drained = worker.loop.drain(GRACE_MS)
  await pipeline.pass(GRACE_MS - 1, worker)
  answer(SUCCEEDED)
  await drained

  expect(await pipeline.lines(schedule)).toEqual(['09:01 succeeded'])
  expect(worker.loop.inFlight).toBe(0)
})

test('an attempt that hangs is handed back uncharged, and another worker can make it at once as attempt 1 of the same run', async () => {
  const pipeline = await pipelineAt('2026-03-02T09:00:00Z')
  const { clock, target, scheduler } = pipeline
  target.script = () => new Promise(() => undefined)
  const schedule = await pipeline.create()
  const [worker, other] = [pipeline.worker(), pipeline.worker('other')]
  const emitted: unknown[] = []
  worker.events.on('attempt.settled', ({ state }) => emitted.push(state))
  clock.advance(MINUTE)
  await worker.startDue()

  const drained = worker.loop.drain(GRACE_MS)
  await pipeline.pass(GRACE_MS, worker)
  await drained
  await worker.heartbeat.leave()

  const run = await scheduler.getRun(CALLER, target.calls[0]?.runId ?? '')
  expect(run).toMatchObject({ state: 'pending', attemptCount: 0, waitsFor: 'worker', retryAt: null, attempts: [] })
  expect(run.startedAt).toBeNull()
  expect(await listWaits(pipeline)).toMatchObject([{ waitsFor: 'worker', dueAt: clock.instant }])
  expect(emitted).toEqual(['pending'])
  target.script = () => SUCCEEDED
  await other.runDue()
  expect(target.calls[1]).toEqual(target.calls[0])
  expect(await scheduler.getRun(CALLER, run.id)).toMatchObject({
    state: 'succeeded',
    attemptCount: 1,
    attempts: [{ attempt: 1, outcome: 'succeeded' }],
  })
  expect(await pipeline.lines(schedule)).toEqual(['09:01 succeeded'])
})

test('an attempt that is handed back leaves the charge of earlier attempts unchanged', async () => {
  const pipeline = await pipelineAt('2026-03-02T09:00:00Z')
  const { clock, target, scheduler } = pipeline
  const schedule = await pipeline.create({ cadence: { kind: 'once', at: '2026-03-02T09:01:00Z' } })
  const [worker, other] = [pipeline.worker(), pipeline.worker('other')]
  target.script = () => FAIL
  clock.advance(MINUTE)
  await worker.runDue()
  target.script = held().script
  clock.advance(HEARTBEAT_MS * 2)
  await worker.startDue()
  await target.whenCalled(2)

  const drained = worker.loop.drain(GRACE_MS)
  await pipeline.pass(GRACE_MS, worker)
  await drained
  target.script = () => SUCCEEDED
  await other.runDue()

  const [run] = await pipeline.ledger(schedule)
  expect(await scheduler.getRun(CALLER, run?.id ?? '')).toMatchObject({
    attemptCount: 2,
    attempts: [{ outcome: 'failed' }, { outcome: 'succeeded' }],
  })
  expect(target.calls.map(({ attempt }) => attempt)).toEqual([1, 2, 2])
})

test('a drain ends in time even if the worker cannot write, and a rescuer finds its runs (I12)', async () => {
  const pipeline = await pipelineAt('2026-03-02T09:00:00Z')
  const { clock, target, database, targets } = pipeline
  const schedule = await pipeline.create()
  const pool = createPool({
    connectionString: database.url,
    role: 'carillon_worker',
    maxConnections: 2,
    isPrepared: true,
  })
  const worker = pipeline.worker('gone')
  await worker.heartbeat.runOnce()
  const { lease, events } = worker
  const loop = pipelineOf({ db: createDb(pool), clock, targets, events, lease })
  target.script = held().script
  clock.advance(MINUTE)
  await worker.heartbeat.runOnce()
  await loop.runOnce()
  await target.whenCalled(1)
  await pool.end()

  const failed = new Promise<void>((resolve) =>
    events.on('service.failed', ({ service }) => service === 'settle queue' && resolve()),
  )
  const drained = loop.drain(GRACE_MS)
  await pipeline.pass(GRACE_MS, worker)
  await failed
  clock.advance(5000)
  await drained
  clock.advance(2 * HEARTBEAT_MS)

  const other = pipeline.worker('other')
  expect(await other.rescuer.runOnce()).toMatchObject({ rescued: 1 })
  target.script = () => SUCCEEDED
  await other.runDue()
  expect(await pipeline.lines(schedule)).toEqual(['09:01 succeeded'])
})

test('a worker that drains takes no more waiting runs, and another worker takes them', async () => {
  const pipeline = await pipelineAt('2026-03-02T09:00:00Z')
  const { clock, target, scheduler } = pipeline
  const { script, answers } = heldEach()
  target.script = script
  const [worker, other] = [pipeline.worker('full', 1), pipeline.worker('other')]
  await pipeline.create({ cadence: { kind: 'once', at: '2026-03-02T09:01:00Z' } })
  clock.advance(MINUTE)
  await worker.heartbeat.runOnce()
  worker.loop.start()
  await target.whenCalled(1)
  const { id } = await pipeline.create()
  const run = await scheduler.runNow(CALLER, id)
  worker.loop.wake()

  const drained = worker.loop.drain(GRACE_MS)
  answers[0]?.(SUCCEEDED)
  await drained
  expect(target.calls).toHaveLength(1)
  expect(await scheduler.getRun(CALLER, run.id)).toMatchObject({ state: 'pending', attemptCount: 0 })
  target.script = () => SUCCEEDED
  await other.runDue()

  expect(await scheduler.getRun(CALLER, run.id)).toMatchObject({ state: 'succeeded', attemptCount: 1 })
})

test('a claim that is under way when the grace period ends is handed back too', async () => {
  const pipeline = await pipelineAt('2026-03-02T09:00:00Z')
  const { clock, target } = pipeline
  target.script = () => new Promise(() => undefined)
  const schedule = await pipeline.create()
  const worker = pipeline.worker()
  clock.advance(MINUTE)
  await worker.heartbeat.runOnce()

  worker.loop.start()
  const drained = worker.loop.drain(0)
  clock.advance(0)
  await drained

  expect(await pipeline.lines(schedule)).toEqual(['09:01 pending'])
  expect(await listWaits(pipeline)).toMatchObject([{ waitsFor: 'worker', dueAt: clock.instant }])
})

test('a worker holds no more runs than its concurrency, however many slots and waiting runs are due at once', async () => {
  const pipeline = await pipelineAt('2026-03-02T09:00:00Z')
  const { clock, target, scheduler } = pipeline
  const { script, answers } = heldEach()
  target.script = script
  const worker = pipeline.worker('small', 2)
  for (let slots = 0; slots < 3; slots += 1) await pipeline.create()
  for (let runs = 0; runs < 3; runs += 1) {
    const { id } = await pipeline.create({ cadence: { kind: 'once', at: '2026-03-02T20:00:00Z' } })
    await scheduler.runNow(CALLER, id)
  }
  clock.advance(MINUTE)
  await worker.heartbeat.runOnce()
  const inFlight: number[] = []
  worker.events.on('attempt.settled', () => inFlight.push(worker.loop.inFlight))

  worker.loop.start()
  for (let call = 0; call < 6; call += 1) {
    // Two calls are under way as long as two are left.
    await target.whenCalled(Math.min(call + 2, 6))
    const settled = worker.whenSettled()
    inFlight.push(worker.loop.inFlight)
    answers[call]?.(SUCCEEDED)
    await settled
    worker.loop.wake()
  }
  const drained = worker.loop.drain(GRACE_MS)
  await pipeline.pass(GRACE_MS, worker)
  await drained

  expect(Math.max(...inFlight)).toBe(2)
  expect(target.calls.filter(({ trigger }) => trigger === 'manual')).toHaveLength(3)
  expect(target.calls).toHaveLength(6)
})

test('a full worker continues as soon as it has room, without a notification and without a sleep', async () => {
  const pipeline = await pipelineAt('2026-03-02T09:00:00Z')
  const { clock, target } = pipeline
  const { script, answers } = heldEach()
  target.script = script
  const worker = pipeline.worker('small', 1)
  for (let schedules = 0; schedules < 4; schedules += 1) await pipeline.create()
  clock.advance(MINUTE)
  await worker.heartbeat.runOnce()

  worker.loop.start()
  for (let call = 0; call < 4; call += 1) {
    await target.whenCalled(call + 1)
    answers[call]?.(SUCCEEDED)
  }
  await worker.loop.drain(GRACE_MS)

  expect(target.calls).toHaveLength(4)
})

test('a stop without a start and a second stop have no effect', async () => {
  const pipeline = await pipelineAt('2026-03-02T09:00:00Z')
  const services = servicesOf(pipeline, pipeline.worker())
  expect(services.map(({ name }) => name)).toEqual(SERVICE_NAMES)
  for (const service of services) {
    await service.stop()
    service.start()
    service.start()
    await Promise.all([service.stop(), service.stop()])
    await service.stop()
  }
})

test.each(SERVICE_NAMES)('the %s can be started and stopped a hundred times at any moment', async (name) => {
  const pipeline = await pipelineAt('2026-03-02T09:00:00Z')
  const { clock } = pipeline
  const worker = pipeline.worker()
  const failures: EventMap['service.failed'][] = []
  worker.events.on('service.failed', (failure) => failures.push(failure))
  await worker.heartbeat.runOnce()
  const service = servicesOf(pipeline, worker).find((each) => each.name === name)
  if (service === undefined) throw new Error(`expected servicesOf to create ${name}, got no such service`)

  for (let round = 0; round < 100; round += 1) {
    service.start()
    if (round % 3 === 1) await Promise.resolve()
    if (round % 3 === 2) await pipeline.database.pool.query('select 1')
    const stops = [service.stop(), service.stop()]
    if (round % 2 === 0) service.start()
    await Promise.all(stops)
  }
  await service.stop()
  worker.lease.release()

  expect(failures).toEqual([])
  expect(clock.waiting).toBe(0)
  const { rows } = await pipeline.database.pool.query(
    `select from pg_stat_activity where datname = current_database() and application_name = 'carillon listener'`,
  )
  expect(rows).toEqual([])
})

test('a service that fails emits an event and runs again', async () => {
  const pipeline = await pipelineAt('2026-03-02T09:00:00Z')
  const { clock, database } = pipeline
  const pool = createPool({
    connectionString: database.url,
    role: 'carillon_worker',
    maxConnections: 1,
    isPrepared: true,
  })
  const events = new Events()
  const gauges = new GaugeCollector({ db: createDb(pool), clock, events }, { periodMs: 1000 })
  await database.pool.query('alter table carillon.schedules rename to hidden')
  const failed = new Promise<EventMap['service.failed']>((resolve) => events.on('service.failed', resolve))

  gauges.start()
  expect(await failed).toMatchObject({ service: 'gauges', error: { code: '42P01' } })
  await database.pool.query('alter table carillon.hidden rename to schedules')
  const taken = whenTaken(gauges)
  clock.advance(1000)

  expect(await taken).toMatchObject({ running: 0 })
  await gauges.stop()
  await pool.end()
})

function servicesOf(pipeline: Pipeline, worker: TestWorker): Service<unknown>[] {
  const { clock, workerDb: db, database } = pipeline
  const { events, lease } = worker
  const deps = { db, clock, events, lease }
  const listening = {
    connectionString: database.url,
    schema: 'carillon',
    onAgenda: () => undefined,
    onCancel: () => undefined,
  }
  const retentionMs = 90 * DAY
  return [
    worker.heartbeat,
    new Listener({ clock, events, ...listening }),
    worker.rescuer,
    ...worker.loop.services,
    new InDoubtCheck({ clock, events, check: () => worker.loop.checkInDoubt() }),
    new GaugeCollector(deps, { periodMs: 1000 }),
    new GrantExpiryWarnings(deps, { periodMs: MINUTE }),
    new Upkeep(deps, { retentionMs }),
    new BacklogWriter({ ...deps, cadences: new CadenceCache() }, { retentionMs }),
    new Auditor(deps, { retentionMs }),
  ]
}

async function whenTaken(gauges: GaugeCollector): Promise<unknown> {
  while (gauges.latest === undefined) await new Promise((resolve) => setImmediate(resolve))
  return gauges.latest
}

test('runs that are claimed or taken after the grace period are handed back without a call, and another worker calls each once', async () => {
  const pipeline = await pipelineAt('2026-03-02T09:00:00Z')
  const { clock, target, scheduler } = pipeline
  const schedule = await pipeline.create()
  const manual = await pipeline.create({ cadence: { kind: 'once', at: '2026-03-02T20:00:00Z' } })
  await scheduler.runNow(CALLER, manual.id)
  const worker = pipeline.worker('one')
  clock.advance(MINUTE)
  await worker.heartbeat.runOnce()
  const under: Promise<unknown>[] = []
  await whileHeld(pipeline, 'lock table carillon.runs in share mode', async () => {
    under.push(worker.loop.runOnce())
    await whenBlocked(pipeline, 2)
    under.push(worker.loop.drain(1000))
    clock.advance(1000)
  })
  await Promise.all(under)
  expect(target.calls).toEqual([])
  expect(await listWaits(pipeline)).toMatchObject([{ waitsFor: 'worker' }, { waitsFor: 'worker' }])

  await pipeline.worker('other').runDue()

  expect(target.calls.map(({ attempt }) => attempt)).toEqual([1, 1])
  expect(await pipeline.lines(schedule)).toEqual(['09:01 succeeded'])
  expect(await pipeline.lines(manual)).toEqual(['09:00 succeeded'])
})
