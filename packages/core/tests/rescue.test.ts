import { randomUUID } from 'node:crypto'

import { expect, test } from 'vitest'

import { GraphileEngine } from '../src/engine/graphile-engine.ts'
import { slotJobs } from '../src/engine/slot-jobs.ts'
import { Events } from '../src/events.ts'
import { idempotencyKey } from '../src/keys.ts'
import { Rescuer, type RescueCounts } from '../src/services/rescuer.ts'
import { createDb, transact } from '../src/store/database.ts'
import { createPool } from '../src/store/pool.ts'
import { registerWorker } from '../src/store/workers.ts'
import { emptiedPipelines, jobKeys } from './emptied-pipeline.ts'
import { readLedger } from './ledger-rows.ts'
import { ANY_NUMBER, CALLER, HEARTBEAT_MS, MINUTE, type Pipeline, type TestWorker } from './pipeline.ts'
import { FAIL, held, heldEach, SUCCEEDED } from './scripted-target.ts'

const pipelineAt = emptiedPipelines()
const LEASE_MS = 2 * HEARTBEAT_MS
const OVERDUE_MS = 10_000

/** A worker that began everything that is due and was never heard of again. */
async function dieHolding(pipeline: Pipeline, untilSlotMs = MINUTE): Promise<TestWorker> {
  const dead = pipeline.worker('dead')
  pipeline.target.script = held().script
  pipeline.clock.advance(untilSlotMs)
  await dead.begin()
  dead.process.stop()
  return dead
}

async function countRows(pipeline: Pipeline, table: string): Promise<number> {
  const { rows } = await pipeline.database.pool.query<{ count: number }>(`select count(*)::int as count from ${table}`)
  return rows[0]?.count ?? Number.NaN
}

test('the run of a dead worker goes on elsewhere at once: attempt 2, the same run id, key and body (I5, I12)', async () => {
  const pipeline = await pipelineAt('2026-03-02T09:00:00Z')
  const { clock, target, scheduler } = pipeline
  const schedule = await pipeline.create({ target: { kind: 'test', body: { list: 'a' } } })
  const dead = await dieHolding(pipeline)
  const deadId = dead.lease.workerId
  const other = pipeline.worker('other')
  await scheduler.edit(CALLER, schedule.id, { target: { kind: 'test', body: { list: 'b' } } }, { revision: 1 })

  clock.advance(LEASE_MS - 1)
  expect(await other.rescuer.runOnce()).toEqual({ rescued: 0, woken: 0, buried: 0 })
  clock.advance(1)
  expect(await other.rescuer.runOnce()).toEqual({ rescued: 1, woken: 0, buried: 1 })
  target.script = () => SUCCEEDED
  expect(await other.doJobs()).toBe(1)

  const [first, second] = target.calls
  expect(second).toEqual({ ...first, attempt: 2 })
  expect(first).toMatchObject({
    spec: { body: { list: 'a' } },
    idempotencyKey: idempotencyKey(schedule.id, clock.instant - LEASE_MS),
  })
  const run = await scheduler.getRun(CALLER, first?.runId ?? '')
  expect(run).toMatchObject({ state: 'succeeded', attemptCount: 2, error: null })
  expect(run.attempts).toMatchObject([
    { attempt: 1, outcome: 'lost', workerId: deadId, error: { code: 'worker_lost' } },
    { attempt: 2, outcome: 'succeeded', workerId: other.lease.workerId, error: null },
  ])
  expect(await scheduler.get(CALLER, schedule.id)).toMatchObject({
    runCount: 1,
    failureCount: 0,
    consecutiveFailures: 0,
  })
})

test('a run that loses its worker at its last attempt has failed, and that is counted (I4)', async () => {
  const pipeline = await pipelineAt('2026-03-02T09:00:00Z')
  const { clock, target, scheduler } = pipeline
  const schedule = await pipeline.create({ policy: { retry: { maxAttempts: 2 } } })
  const workers = [await dieHolding(pipeline)]
  for (const name of ['second', 'third']) {
    clock.advance(LEASE_MS)
    const worker = pipeline.worker(name)
    await worker.rescuer.runOnce()
    workers.push(worker)
    await worker.beginJobs()
    worker.process.stop()
  }

  expect(target.calls.map(({ attempt }) => attempt)).toEqual([1, 2])
  const [run] = await pipeline.ledger(schedule)
  expect(run).toMatchObject({ state: 'failed', attemptCount: 2, error: { code: 'worker_lost' } })
  expect(await scheduler.get(CALLER, schedule.id)).toMatchObject({ failureCount: 1, consecutiveFailures: 1 })
  expect(await jobKeys(pipeline)).toEqual([])
})

test('deaths that use up the attempts pause a schedule like any other failures (I4)', async () => {
  const pipeline = await pipelineAt('2026-03-02T09:00:00Z')
  const { clock, scheduler } = pipeline
  // Never cut by its own worker, which is as good as dead: its clock is the others'.
  const target = { kind: 'test', timeoutSeconds: 86_400 }
  const schedule = await pipeline.create({ target, policy: { retry: { maxAttempts: 1 }, autoPauseThreshold: 3 } })
  for (const untilSlotMs of [MINUTE, MINUTE - LEASE_MS, MINUTE - LEASE_MS]) {
    await dieHolding(pipeline, untilSlotMs)
    clock.advance(LEASE_MS)
    await pipeline.worker('rescuer').rescuer.runOnce()
  }

  expect(await scheduler.get(CALLER, schedule.id)).toMatchObject({
    state: 'paused',
    pausedReason: 'auto:consecutive_failures',
    failureCount: 3,
  })
})

test('what a rescuer settles is told like any other settlement, and so is the pause that follows from it', async () => {
  const pipeline = await pipelineAt('2026-03-02T09:00:00Z')
  const { clock } = pipeline
  const target = { kind: 'test', timeoutSeconds: 86_400 }
  const schedule = await pipeline.create({ target, policy: { retry: { maxAttempts: 1 }, autoPauseThreshold: 3 } })
  const told: unknown[] = []
  for (const untilSlotMs of [MINUTE, MINUTE - LEASE_MS, MINUTE - LEASE_MS]) {
    await dieHolding(pipeline, untilSlotMs)
    clock.advance(LEASE_MS)
    const { events, rescuer } = pipeline.worker('rescuer')
    events.on('run.rescued', ({ scheduleId }) => told.push(['rescued', scheduleId]))
    events.on('attempt.settled', ({ scheduleId, state, durationMs }) => told.push([state, scheduleId, durationMs]))
    events.on('schedule.paused', ({ scheduleId, reason }) => told.push([reason, scheduleId]))
    await rescuer.runOnce()
  }

  const rescued = [
    ['rescued', schedule.id],
    ['failed', schedule.id, LEASE_MS],
  ]
  expect(told).toEqual([...rescued, ...rescued, ...rescued, ['auto:consecutive_failures', schedule.id]])
})

test('a run that was to be cancelled when its worker died is cancelled, not tried again', async () => {
  const pipeline = await pipelineAt('2026-03-02T09:00:00Z')
  const { clock, target, scheduler } = pipeline
  const schedule = await pipeline.create()
  await dieHolding(pipeline)
  const [running] = await pipeline.ledger(schedule)
  await scheduler.cancel(CALLER, running?.id ?? '')
  clock.advance(LEASE_MS)
  const other = pipeline.worker('other')

  expect(await other.rescuer.runOnce()).toMatchObject({ rescued: 1 })
  expect(await other.doJobs()).toBe(0)

  const run = await scheduler.getRun(CALLER, running?.id ?? '')
  expect(run).toMatchObject({ state: 'cancelled', attempts: [{ outcome: 'cancelled' }] })
  expect(target.calls).toHaveLength(1)
})

test('more runs than one batch holds are all rescued by one pass, each once', async () => {
  const pipeline = await pipelineAt('2026-03-02T09:00:00Z', ANY_NUMBER)
  const { clock, target } = pipeline
  const count = 600
  const schedules = await createMany(pipeline, count)
  const dead = pipeline.worker('dead', count)
  target.script = held().script
  clock.advance(MINUTE)
  await dead.begin()
  expect(target.calls).toHaveLength(count)
  clock.advance(LEASE_MS)
  const other = pipeline.worker('other', count)

  expect(await other.rescuer.runOnce()).toEqual({ rescued: count, woken: 0, buried: 1 })
  target.script = () => SUCCEEDED
  expect(await other.doJobs()).toBe(count)

  const { runs, attempts } = await readLedger(pipeline.database.pool)
  expect(runs).toHaveLength(schedules)
  expect(new Set(runs.map(({ state }) => state))).toEqual(new Set(['succeeded']))
  expect(attempts).toHaveLength(2 * count)
})

test('two runs of one schedule that overlap by its leave are both rescued', async () => {
  const pipeline = await pipelineAt('2026-03-02T09:00:00Z')
  const { clock, target } = pipeline
  const policy = { overlap: 'allow' }
  const schedule = await pipeline.create({ policy, target: { kind: 'test', timeoutSeconds: 86_400 } })
  const dead = await dieHolding(pipeline)
  for (let beats = 0; beats < MINUTE / HEARTBEAT_MS; beats += 1) {
    clock.advance(HEARTBEAT_MS)
    await dead.heartbeat.runOnce()
  }
  await dead.begin()
  expect(target.calls).toHaveLength(2)
  clock.advance(LEASE_MS)
  const other = pipeline.worker('other')

  expect(await other.rescuer.runOnce()).toEqual({ rescued: 2, woken: 0, buried: 1 })
  target.script = () => SUCCEEDED
  expect(await other.doJobs()).toBe(2)

  expect(await pipeline.lines(schedule)).toEqual(['09:01 succeeded', '09:02 succeeded'])
  expect((await pipeline.ledger(schedule)).map(({ attemptCount }) => attemptCount)).toEqual([2, 2])
})

test('rescuers of several workers at once rescue every run once between them (I12)', async () => {
  const pipeline = await pipelineAt('2026-03-02T09:00:00Z', ANY_NUMBER)
  const { clock, database, target } = pipeline
  const count = 300
  await createMany(pipeline, count)
  target.script = held().script
  clock.advance(MINUTE)
  await pipeline.worker('dead', count).begin()
  clock.advance(LEASE_MS)
  const rescued: string[] = []
  const events = new Events()
  events.on('run.rescued', ({ runId }) => rescued.push(runId))
  const connection = { connectionString: database.url, role: 'carillon_worker', maxConnections: 2, isPrepared: true }
  const pools = Array.from({ length: 4 }, () => createPool(connection))
  const rescuers = pools.map(
    (pool) => new Rescuer({ db: createDb(pool), clock, events, jobs: slotJobs }, { periodMs: 1000 }),
  )

  const counts = await Promise.all(rescuers.map((rescuer) => rescuer.runOnce()))
  await Promise.all(pools.map((pool) => pool.end()))

  expect(counts.reduce((sum: number, { rescued: own }: RescueCounts) => sum + own, 0)).toBe(count)
  expect(new Set(rescued).size).toBe(count)
  expect(rescued).toHaveLength(count)
  const { runs, attempts } = await readLedger(database.pool)
  expect(runs.filter(({ state, attempt_count }) => state === 'retrying' && attempt_count === 1)).toHaveLength(count)
  expect(attempts.filter(({ outcome }) => outcome === 'lost')).toHaveLength(count)
  expect(await jobKeys(pipeline)).toHaveLength(count)
})

test('a dead worker is taken off the list, and the jobs it had locked in the engine are free again', async () => {
  const pipeline = await pipelineAt('2026-03-02T09:00:00Z')
  const { clock, db, database, scheduler, target } = pipeline
  const schedule = await pipeline.create()
  await scheduler.runNow(CALLER, schedule.id)
  const engineWorkerIds = ['pool-of-the-dead']
  const now = clock.databaseNow()
  await registerWorker(db, {
    id: randomUUID(),
    name: 'dead',
    targetKinds: ['test'],
    engineWorkerIds,
    leaseMs: LEASE_MS,
    now,
  })
  await database.pool.query(
    `update carillon_jobs._private_jobs set locked_at = now(), locked_by = 'pool-of-the-dead', attempts = 1`,
  )
  const other = pipeline.worker('other')
  expect(await other.doJobs()).toBe(0)
  clock.advance(LEASE_MS)

  expect(await other.rescuer.runOnce()).toEqual({ rescued: 0, woken: 0, buried: 2 })

  expect(await countRows(pipeline, 'carillon.workers')).toBe(0)
  expect(await other.doJobs()).toBe(1)
  expect(target.calls).toHaveLength(1)
})

test('the engine locks jobs under the names that its worker tells the others', async () => {
  const pipeline = await pipelineAt('2026-03-02T09:00:00Z')
  const { database, scheduler } = pipeline
  await scheduler.runNow(CALLER, (await pipeline.create()).id)
  const pool = createPool({ connectionString: database.url, role: 'carillon_worker' })
  const engine = new GraphileEngine({ pool, events: new Events(), targetKinds: ['test'] })
  const [taken, done] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
  await engine.start({
    attempt: () => {
      taken.resolve()
      return done.promise
    },
    upkeep: {},
  })

  await taken.promise
  const { rows } = await database.pool.query<{ locked_by: string }>('select locked_by from carillon_jobs._private_jobs')
  expect(engine.workerIds).toEqual(rows.map(({ locked_by }) => locked_by))
  expect(engine.workerIds).toHaveLength(1)

  done.resolve()
  await engine.stop()
  await pool.end()
})

test('a retry whose job was lost gets a new one, once it is well overdue and only once', async () => {
  const pipeline = await pipelineAt('2026-03-02T09:00:00Z')
  const { clock, database, target } = pipeline
  const schedule = await pipeline.create({ policy: { overlap: 'allow' } })
  target.script = () => FAIL
  clock.advance(MINUTE)
  const worker = pipeline.worker()
  await worker.keep()
  const jobs = async (): Promise<unknown> =>
    (await database.pool.query('select key, task_id, payload::text from carillon_jobs._private_jobs')).rows
  const before = await jobs()
  await database.pool.query('delete from carillon_jobs._private_jobs')
  const [run] = await pipeline.ledger(schedule)
  await pipeline.pass((run?.retryAt ?? Number.NaN) - clock.instant + OVERDUE_MS - 1, worker)
  expect(await worker.rescuer.runOnce()).toEqual({ rescued: 0, woken: 0, buried: 0 })
  await pipeline.pass(1, worker)

  expect(await worker.rescuer.runOnce()).toEqual({ rescued: 0, woken: 1, buried: 0 })
  expect(await jobs()).toEqual(before)
  expect(await worker.rescuer.runOnce()).toEqual({ rescued: 0, woken: 0, buried: 0 })

  target.script = () => SUCCEEDED
  expect(await worker.doJobs()).toBe(1)
  expect(await pipeline.lines(schedule)).toEqual(['09:01 succeeded'])
})

test('a slot that waits behind a run of a revision that knew of no waiting is woken all the same', async () => {
  const pipeline = await pipelineAt('2026-03-02T09:00:00Z')
  const { clock, target, scheduler } = pipeline
  const { script, answers } = heldEach()
  const input = { target: { kind: 'test', timeoutSeconds: 86_400 }, policy: { overlap: 'forbid' } }
  const schedule = await pipeline.create(input)
  target.script = script
  const worker = pipeline.worker()
  clock.advance(MINUTE)
  await worker.begin()
  await scheduler.edit(CALLER, schedule.id, { policy: { overlap: 'queue' } }, { revision: 1 })
  await pipeline.pass(MINUTE, worker)
  await worker.begin()
  expect(await pipeline.lines(schedule)).toEqual(['09:01 running', '09:02 pending'])
  expect(await worker.rescuer.runOnce()).toMatchObject({ woken: 0 })

  answers[0]?.(SUCCEEDED)
  await worker.keeper.whenIdle()
  await worker.rescuer.runOnce()
  await worker.beginJobs()
  await target.whenCalled(2)
  answers[1]?.(SUCCEEDED)
  await worker.keeper.whenIdle()

  expect(await pipeline.lines(schedule)).toEqual(['09:01 succeeded', '09:02 succeeded'])
})

test('a rescue that is cut short half-way leaves nothing behind, and the next one does it all (I4)', async () => {
  const pipeline = await pipelineAt('2026-03-02T09:00:00Z')
  const { clock, workerDb: db, database } = pipeline
  await pipeline.create()
  await dieHolding(pipeline)
  clock.advance(LEASE_MS)
  const before = await readLedger(database.pool)
  const brokenJobs = { ...slotJobs, enqueue: () => Promise.reject(new Error('cut short')) }
  const broken = new Rescuer({ db, clock, events: new Events(), jobs: brokenJobs }, { periodMs: 1000 })

  await expect(broken.runOnce()).rejects.toThrow('cut short')
  expect(await readLedger(database.pool)).toEqual(before)

  expect(await pipeline.worker('other').rescuer.runOnce()).toEqual({ rescued: 1, woken: 0, buried: 1 })
  expect(await jobKeys(pipeline)).toHaveLength(1)
})

test('a schedule that somebody holds delays a rescue and loses nothing', async () => {
  const pipeline = await pipelineAt('2026-03-02T09:00:00Z')
  const { clock, db } = pipeline
  const schedule = await pipeline.create()
  await dieHolding(pipeline)
  clock.advance(LEASE_MS)
  const [locked, free] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
  const holder = transact(db, clock, async (tx) => {
    await tx.selectFrom('carillon.schedules').select('id').where('id', '=', schedule.id).forUpdate().execute()
    locked.resolve()
    await free.promise
  })
  await locked.promise
  const rescue = pipeline.worker('other').rescuer.runOnce()

  free.resolve()
  await holder

  expect(await rescue).toEqual({ rescued: 1, woken: 0, buried: 1 })
})

/** Many schedules at once, each a copy of one; returns how many there are. */
async function createMany(pipeline: Pipeline, count: number): Promise<number> {
  await Promise.all(Array.from({ length: count }, (_, index) => pipeline.create({ name: `schedule ${index}` })))
  return count
}
