import { randomUUID } from 'node:crypto'

import { expect, test } from 'vitest'

import { CadenceCache } from '../../src/cadences/cadence-cache.ts'
import { createDb } from '../../src/db/database.ts'
import { createPool } from '../../src/db/pool.ts'
import { Events } from '../../src/kernel/events.ts'
import { idempotencyKey } from '../../src/kernel/ids.ts'
import { Rescuer, type RescueCounts } from '../../src/pipeline/rescuer.ts'
import { registerWorker, removeDeadWorkers } from '../../src/pipeline/store/workers.ts'
import { whileHeld } from '../blocked-statement.ts'
import { emptiedPipelines } from '../emptied-pipeline.ts'
import { readLedger } from '../ledger-rows.ts'
import { ANY_NUMBER, CALLER, HEARTBEAT_MS, MINUTE, type Pipeline, type TestWorker } from '../pipeline.ts'
import { watchedDb } from '../query-plan.ts'
import { countRowsRead } from '../rows-read.ts'
import { NO_HOOKS } from '../run-fence.ts'
import { FAIL, held, SUCCEEDED } from '../scripted-target.ts'
import { sql } from '../sql.ts'
import { beginSlotsAs, listWaits } from '../waits.ts'

const pipelineAt = emptiedPipelines()
const LEASE_MS = 3 * HEARTBEAT_MS
const RESCUE_EVERY_MS = HEARTBEAT_MS / 2
const PROMISE_MS = 15_000

/** A worker that starts all due slots and then dies. */
async function dieHolding(pipeline: Pipeline, untilSlotMs = MINUTE): Promise<TestWorker> {
  const dead = pipeline.worker('dead')
  pipeline.target.script = held().script
  pipeline.clock.advance(untilSlotMs)
  await dead.startDue()
  dead.process.stop()
  return dead
}

test('another worker continues the run of a dead worker at once, as attempt 2 with the same run id, key and body (I5, I12)', async () => {
  const pipeline = await pipelineAt('2026-03-02T09:00:00Z')
  const { clock, target, scheduler } = pipeline
  const schedule = await pipeline.create({ target: { kind: 'test', body: { list: 'a' } } })
  const dead = await dieHolding(pipeline)
  const deadId = dead.lease.workerId
  const other = pipeline.worker('other')
  await scheduler.edit(CALLER, schedule.id, { target: { kind: 'test', body: { list: 'b' } } }, { revision: 1 })

  clock.advance(LEASE_MS - 1)
  expect(await other.rescuer.runOnce()).toEqual({ rescued: 0, removed: 0 })
  clock.advance(1)
  expect(await other.rescuer.runOnce()).toEqual({ rescued: 1, removed: 1 })
  expect(await listWaits(pipeline)).toMatchObject([{ waitsFor: 'worker', dueAt: clock.instant }])
  target.script = () => SUCCEEDED
  await other.runDue()

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

test('a run that loses its worker at its last attempt fails, and the failure is counted (I4)', async () => {
  const pipeline = await pipelineAt('2026-03-02T09:00:00Z')
  const { clock, target, scheduler } = pipeline
  const schedule = await pipeline.create({ policy: { retry: { maxAttempts: 2 } } })
  const workers = [await dieHolding(pipeline)]
  for (const name of ['second', 'third']) {
    clock.advance(LEASE_MS)
    const worker = pipeline.worker(name)
    await worker.rescuer.runOnce()
    workers.push(worker)
    await worker.startDue()
    worker.process.stop()
  }

  expect(target.calls.map(({ attempt }) => attempt)).toEqual([1, 2])
  const [run] = await pipeline.ledger(schedule)
  expect(run).toMatchObject({ state: 'failed', attemptCount: 2, error: { code: 'worker_lost' } })
  expect(await scheduler.get(CALLER, schedule.id)).toMatchObject({ failureCount: 1, consecutiveFailures: 1 })
  expect(await listWaits(pipeline)).toEqual([])
})

test('a schedule whose runs fail because their workers died pauses itself as after other failures (I4)', async () => {
  const pipeline = await pipelineAt('2026-03-02T09:00:00Z')
  const { clock, scheduler } = pipeline
  // The timeout is longer than the test. The dead worker shares the clock of the others and would still end its calls.
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

test('a rescuer emits the events of its settlements, and of an auto-pause that follows', async () => {
  const pipeline = await pipelineAt('2026-03-02T09:00:00Z')
  const { clock } = pipeline
  const target = { kind: 'test', timeoutSeconds: 86_400 }
  const schedule = await pipeline.create({ target, policy: { retry: { maxAttempts: 1 }, autoPauseThreshold: 3 } })
  const emitted: unknown[] = []
  for (const untilSlotMs of [MINUTE, MINUTE - LEASE_MS, MINUTE - LEASE_MS]) {
    await dieHolding(pipeline, untilSlotMs)
    clock.advance(LEASE_MS)
    const { events, rescuer } = pipeline.worker('rescuer')
    events.on('run.rescued', ({ scheduleId }) => emitted.push(['rescued', scheduleId]))
    events.on('attempt.settled', ({ scheduleId, state, durationMs }) => emitted.push([state, scheduleId, durationMs]))
    events.on('schedule.paused', ({ scheduleId, reason }) => emitted.push([reason, scheduleId]))
    await rescuer.runOnce()
  }

  const rescued = [
    ['rescued', schedule.id],
    ['failed', schedule.id, LEASE_MS],
  ]
  expect(emitted).toEqual([...rescued, ...rescued, ...rescued, ['auto:consecutive_failures', schedule.id]])
})

test('a run with a request to cancel whose worker died is cancelled, not retried', async () => {
  const pipeline = await pipelineAt('2026-03-02T09:00:00Z')
  const { clock, target, scheduler } = pipeline
  const schedule = await pipeline.create()
  await dieHolding(pipeline)
  const [running] = await pipeline.ledger(schedule)
  await scheduler.cancel(CALLER, running?.id ?? '')
  clock.advance(LEASE_MS)
  const other = pipeline.worker('other')

  expect(await other.rescuer.runOnce()).toMatchObject({ rescued: 1 })
  await other.runDue()

  const run = await scheduler.getRun(CALLER, running?.id ?? '')
  expect(run).toMatchObject({ state: 'cancelled', attempts: [{ outcome: 'cancelled' }] })
  expect(target.calls).toHaveLength(1)
})

test('one rescue rescues all runs once, even if they do not fit one batch', async () => {
  const pipeline = await pipelineAt('2026-03-02T09:00:00Z', ANY_NUMBER)
  const { clock, target } = pipeline
  const count = 600
  const schedules = await createMany(pipeline, count)
  const dead = pipeline.worker('dead', count)
  target.script = held().script
  clock.advance(MINUTE)
  await dead.startDue()
  expect(target.calls).toHaveLength(count)
  clock.advance(LEASE_MS)
  const other = pipeline.worker('other', count)

  expect(await other.rescuer.runOnce()).toEqual({ rescued: count, removed: 1 })
  target.script = () => SUCCEEDED
  await other.runDue()

  const { runs, attempts } = await readLedger(pipeline.database.pool)
  expect(runs).toHaveLength(schedules)
  expect(new Set(runs.map(({ state }) => state))).toEqual(new Set(['succeeded']))
  expect(attempts).toHaveLength(2 * count)
})

test('two overlapping runs of one schedule under allow are both rescued', async () => {
  const pipeline = await pipelineAt('2026-03-02T09:00:00Z')
  const { clock, target } = pipeline
  const policy = { overlap: 'allow' }
  const schedule = await pipeline.create({ policy, target: { kind: 'test', timeoutSeconds: 86_400 } })
  const dead = await dieHolding(pipeline)
  for (let beats = 0; beats < MINUTE / HEARTBEAT_MS; beats += 1) {
    clock.advance(HEARTBEAT_MS)
    await dead.heartbeat.runOnce()
  }
  await dead.startDue()
  expect(target.calls).toHaveLength(2)
  clock.advance(LEASE_MS)
  const other = pipeline.worker('other')

  expect(await other.rescuer.runOnce()).toEqual({ rescued: 2, removed: 1 })
  target.script = () => SUCCEEDED
  await other.runDue()

  expect(await pipeline.lines(schedule)).toEqual(['09:01 succeeded', '09:02 succeeded'])
  expect((await pipeline.ledger(schedule)).map(({ attemptCount }) => attemptCount)).toEqual([2, 2])
})

test('concurrent rescuers of several workers rescue every run once (I12)', async () => {
  const pipeline = await pipelineAt('2026-03-02T09:00:00Z', ANY_NUMBER)
  const { clock, database, target } = pipeline
  const count = 300
  await createMany(pipeline, count)
  target.script = held().script
  clock.advance(MINUTE)
  await pipeline.worker('dead', count).startDue()
  clock.advance(LEASE_MS)
  const rescued: string[] = []
  const events = new Events()
  events.on('run.rescued', ({ runId }) => rescued.push(runId))
  const connection = { connectionString: database.url, role: 'carillon_worker', maxConnections: 2, isPrepared: true }
  const pools = Array.from({ length: 4 }, () => createPool(connection))
  const cadences = new CadenceCache()
  const deps = { clock, events, cadences, hooks: NO_HOOKS, targetKinds: ['test'] }
  const rescuers = pools.map((pool) => new Rescuer({ ...deps, db: createDb(pool) }, { periodMs: 1000 }))

  const counts = await Promise.all(rescuers.map((rescuer) => rescuer.runOnce()))
  await Promise.all(pools.map((pool) => pool.end()))

  expect(counts.reduce((sum: number, { rescued: own }: RescueCounts) => sum + own, 0)).toBe(count)
  expect(new Set(rescued).size).toBe(count)
  expect(rescued).toHaveLength(count)
  const { runs, attempts } = await readLedger(database.pool)
  expect(runs.filter(({ state, attempt_count }) => state === 'retrying' && attempt_count === 1)).toHaveLength(count)
  expect(attempts.filter(({ outcome }) => outcome === 'lost')).toHaveLength(count)
  expect(await listWaits(pipeline)).toHaveLength(count)
})

test('the row of a dead worker without runs is removed, and any worker can take waiting runs', async () => {
  const pipeline = await pipelineAt('2026-03-02T09:00:00Z')
  const { clock, db, scheduler, target } = pipeline
  await scheduler.runNow(CALLER, (await pipeline.create()).id)
  await registerDead(pipeline)
  const other = pipeline.worker('other')
  await other.heartbeat.runOnce()
  clock.advance(LEASE_MS)

  expect(await other.rescuer.runOnce()).toEqual({ rescued: 0, removed: 2 })

  expect((await sql`select name from carillon.workers`.execute(db)).rows).toEqual([])
  await other.runDue()
  expect(target.calls).toHaveLength(1)
})

test('a worker whose lease was extended after a rescuer found it dead is not removed', async () => {
  const pipeline = await pipelineAt('2026-03-02T09:00:00Z')
  const { clock, workerDb } = pipeline
  const [living, dead] = [await registerDead(pipeline, LEASE_MS + 1), await registerDead(pipeline)]
  clock.advance(LEASE_MS)

  expect(await removeDeadWorkers(workerDb, { ids: [living, dead], now: clock.databaseNow() })).toBe(1)
})

test('runs of a worker whose row was deleted are found within a minute, by a search of all held runs', async () => {
  const pipeline = await pipelineAt('2026-03-02T09:00:00Z')
  const { clock, db } = pipeline
  const schedule = await pipeline.create({ cadence: { kind: 'once', at: '2026-03-02T09:01:00Z' } })
  const other = pipeline.worker('other')
  await dieHolding(pipeline)
  await other.rescuer.runOnce()
  await sql`delete from carillon.workers where name = 'dead'`.execute(db)

  clock.advance(MINUTE - 1)
  expect(await other.rescuer.runOnce()).toEqual({ rescued: 0, removed: 0 })
  clock.advance(1)
  expect(await other.rescuer.runOnce()).toEqual({ rescued: 1, removed: 0 })

  expect(await pipeline.lines(schedule)).toEqual(['09:01 retrying'])
})

test('a rescue that fails in the middle is rolled back, and the next one repeats it (I4)', async () => {
  const pipeline = await pipelineAt('2026-03-02T09:00:00Z')
  const { clock, database } = pipeline
  await pipeline.create()
  await dieHolding(pipeline)
  clock.advance(LEASE_MS)
  const before = await readLedger(database.pool)
  const db = watchedDb(createPool({ connectionString: database.url, role: 'carillon_worker' }), ({ text }) => {
    if (text.includes('pg_notify')) throw new Error('interrupted')
  })
  const deps = { clock, events: new Events(), cadences: new CadenceCache(), hooks: NO_HOOKS, targetKinds: ['test'] }
  const broken = new Rescuer({ ...deps, db }, { periodMs: 1000 })

  await expect(broken.runOnce()).rejects.toThrow('interrupted')
  await db.close()
  expect(await readLedger(database.pool)).toEqual(before)

  expect(await pipeline.worker('other').rescuer.runOnce()).toEqual({ rescued: 1, removed: 1 })
  expect(await listWaits(pipeline)).toHaveLength(1)
})

test('a rescue skips the run of a locked schedule, keeps the row of its worker, and the next rescue finds the run', async () => {
  const pipeline = await pipelineAt('2026-03-02T09:00:00Z')
  const { clock, db } = pipeline
  const [locked, free] = [await pipeline.create(), await pipeline.create()]
  await dieHolding(pipeline)
  clock.advance(LEASE_MS)
  const { rescuer } = pipeline.worker('other')
  const workers = async () => (await sql`select name from carillon.workers`.execute(db)).rows

  await whileHeld(pipeline, `select from carillon.schedules where id = '${locked.id}' for update`, async () => {
    expect(await rescuer.runOnce()).toEqual({ rescued: 1, removed: 0 })
    expect(await pipeline.lines(free)).toEqual(['09:01 retrying'])
    expect(await pipeline.lines(locked)).toEqual(['09:01 running'])
    expect(await workers()).toEqual([{ name: 'dead' }])
    expect(await rescuer.runOnce()).toEqual({ rescued: 0, removed: 0 })
  })

  expect(await rescuer.runOnce()).toEqual({ rescued: 1, removed: 1 })
  expect(await pipeline.lines(locked)).toEqual(['09:01 retrying'])
  expect(await workers()).toEqual([])
})

test.each([
  { overlap: 'forbid', next: 'skipped overlap', inTheEnd: 'skipped overlap' },
  { overlap: 'queue', next: 'pending', inTheEnd: 'succeeded' },
] as const)(
  'under $overlap a rescued run goes before the next slot, even if that slot begins before a worker takes the run',
  async ({ overlap, next, inTheEnd }) => {
    const pipeline = await pipelineAt('2026-03-02T09:00:00Z')
    const { target, scheduler } = pipeline
    const schedule = await pipeline.create({ target: { kind: 'test', timeoutSeconds: 86_400 }, policy: { overlap } })
    await dieHolding(pipeline)
    const other = pipeline.worker('other')

    await pipeline.pass(MINUTE, other)
    expect(await other.rescuer.runOnce()).toMatchObject({ rescued: 1 })
    await beginSlotsAs(pipeline, other)
    expect(await pipeline.lines(schedule)).toEqual(['09:01 retrying', `09:02 ${next}`])
    target.script = () => SUCCEEDED
    await other.runDue()
    await other.runDue()

    expect(await pipeline.lines(schedule)).toEqual(['09:01 succeeded', `09:02 ${inTheEnd}`])
    expect(await scheduler.get(CALLER, schedule.id)).toMatchObject({ failureCount: 0 })
  },
)

test.each([
  { how: 'died before it took the run', isTaken: false, lossesMs: [0] },
  { how: 'took the run and died, counted from that second loss', isTaken: true, lossesMs: [0, PROMISE_MS] },
])('a run continues within 15 s of its loss even if a second worker $how', async ({ isTaken, lossesMs }) => {
  const pipeline = await pipelineAt('2026-03-02T09:00:00Z')
  const { target } = pipeline
  const schedule = await pipeline.create({
    cadence: { kind: 'once', at: '2026-03-02T09:01:00Z' },
    target: { kind: 'test', timeoutSeconds: 86_400 },
  })
  const [second, living] = [pipeline.worker('second'), pipeline.worker('living')]
  await dieHolding(pipeline)

  let isSecondDead = false
  for (let passed = 0; passed < (lossesMs.at(-1) ?? 0) + PROMISE_MS; passed += RESCUE_EVERY_MS) {
    await pipeline.pass(RESCUE_EVERY_MS, living)
    const { rescued } = await living.rescuer.runOnce()
    if (rescued > 0 && !isSecondDead) {
      isSecondDead = true
      await second.heartbeat.runOnce()
      if (isTaken) await second.startDue()
      second.process.stop()
      target.script = () => SUCCEEDED
    }
    if (isSecondDead) await living.runDue()
  }

  expect(isSecondDead).toBe(true)
  expect(await pipeline.lines(schedule)).toEqual(['09:01 succeeded'])
})

const WAITING = 20_000
const ROWS_MAX = 100

test('neither a rescue nor a heartbeat reads more than a hundred rows while 20,000 runs wait for their retry', async () => {
  const pipeline = await pipelineAt('2026-03-02T09:00:00Z')
  const { clock, target, database, db: admin } = pipeline
  // A single connection, so that its statistics can be flushed.
  const connection = { connectionString: database.url, role: 'carillon_worker', maxConnections: 1, isPrepared: true }
  const db = createDb(createPool(connection))
  const retry = { maxAttempts: 3, baseSeconds: 3600, capSeconds: 3600 }
  await pipeline.create({ cadence: { kind: 'once', at: '2026-03-02T09:01:00Z' }, policy: { retry } })
  const worker = pipeline.worker('worker', 200, { db })
  target.script = () => FAIL
  clock.advance(MINUTE)
  await worker.runDue()
  // Copies of a run that really waits, a millisecond apart.
  const columns = `tenant_id, project_id, revision, trigger, state, attempt_count, token, begun_at, started_at, due_at, waits_for,
    lane`
  await database.pool.query(
    `insert into carillon.runs (schedule_id, scheduled_for, id, ${columns})
     select schedule_id, scheduled_for + n * interval '1 millisecond', gen_random_uuid(), ${columns}
     from carillon.runs, generate_series(1, $1::integer) as n`,
    [WAITING - 1],
  )
  await database.pool.query('analyze carillon.runs')
  await registerDead(pipeline)
  // From time to time a rescuer searches all held runs. The second rescue does not.
  await worker.rescuer.runOnce()
  await pipeline.pass(RESCUE_EVERY_MS, worker)

  const read = {
    rescue: await countRowsRead({ db, admin }, () => worker.rescuer.runOnce()),
    heartbeat: await countRowsRead({ db, admin }, () => worker.heartbeat.runOnce()),
    rescueOfDead: await countRowsRead({ db, admin }, async () => {
      await pipeline.pass(LEASE_MS, worker)
      expect(await worker.rescuer.runOnce()).toEqual({ rescued: 0, removed: 1 })
    }),
  }
  await db.close()

  expect(Math.max(...Object.values(read)), JSON.stringify(read)).toBeLessThanOrEqual(ROWS_MAX)
})

/** Inserts the row of a worker that does not exist. */
async function registerDead({ db, clock }: Pipeline, leaseMs = LEASE_MS): Promise<string> {
  const id = randomUUID()
  await registerWorker(db, { id, name: 'dead', targetKinds: ['test'], leaseMs, now: clock.databaseNow() })
  return id
}

/** Creates this many schedules concurrently. Returns their number. */
async function createMany(pipeline: Pipeline, count: number): Promise<number> {
  await Promise.all(Array.from({ length: count }, (_, index) => pipeline.create({ name: `schedule ${index}` })))
  return count
}

test('a run that cannot be settled is reported, and the other runs of its batch are rescued', async () => {
  const pipeline = await pipelineAt('2026-03-02T09:00:00Z', ANY_NUMBER)
  const { clock, database } = pipeline
  for (let schedule = 0; schedule < 5; schedule += 1) await pipeline.create()
  await dieHolding(pipeline)
  // A lost run becomes retrying, which a check of the ledger rejects for a run without an attempt.
  await database.pool.query(
    'update carillon.runs set attempt_count = 0 where id = (select id from carillon.runs order by id limit 1)',
  )
  const other = pipeline.worker('other')
  clock.advance(LEASE_MS)

  await expect(other.rescuer.runOnce()).rejects.toMatchObject({ code: '23514' })

  expect(await listWaits(pipeline)).toHaveLength(4)
  await expect(other.rescuer.runOnce()).rejects.toMatchObject({ code: '23514' })
})
