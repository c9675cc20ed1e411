import { randomUUID } from 'node:crypto'
import { setImmediate } from 'node:timers/promises'

import { expect, test } from 'vitest'

import { systemClock } from '../src/clock.ts'
import { Events, type EventMap } from '../src/events.ts'
import { Strays } from '../src/keeper/strays.ts'
import { Lease } from '../src/lease.ts'
import { createPool } from '../src/store/pool.ts'
import { whenBlocked, whileHeld } from './blocked-statement.ts'
import { emptiedPipelines } from './emptied-pipeline.ts'
import { startFaultProxy, type FaultProxy } from './fault-proxy.ts'
import { readLedger } from './ledger-rows.ts'
import { CALLER, MINUTE, type Pipeline, type TestWorker } from './pipeline.ts'
import { recordingDb } from './query-plan.ts'
import { FAIL, held, SUCCEEDED } from './scripted-target.ts'

const pipelineAt = emptiedPipelines()
const NEXT_YEAR = '2027-03-02T09:00:00Z'
/** With its end: who connects says `read committed`. */
const COMMIT = 'commit\0'
/** In the one statement that takes waiting runs, when a connection says it for the first time. */
const TAKE = 'for update of schedules skip locked'

test('a begin whose commit was answered into nowhere is handed back, and its slot runs once, uncharged (I3, I12)', async () => {
  const pipeline = await pipelineAt('2026-03-02T09:00:00Z')
  const { clock, target, database } = pipeline
  const schedule = await pipeline.create()
  await using rig = await startRig(pipeline)
  const { worker } = rig
  clock.advance(MINUTE)
  await worker.heartbeat.runOnce()

  const handedBack = worker.whenSettled()
  await rig.loseCommit(() => worker.keeper.runOnce())
  await handedBack
  await worker.keep()

  expect(await pipeline.lines(schedule)).toEqual(['09:01 succeeded'])
  expect(target.calls.map(({ attempt }) => attempt)).toEqual([1])
  expect((await readLedger(database.pool)).attempts).toMatchObject([{ attempt: 1, outcome: 'succeeded' }])
})

test('a take that was answered into nowhere is handed back, and its attempt is made once (I12)', async () => {
  const pipeline = await pipelineAt('2026-03-02T09:00:00Z')
  const { clock, target, database } = pipeline
  const schedule = await pipeline.create()
  await using rig = await startRig(pipeline)
  const { worker } = rig
  target.script = () => FAIL
  clock.advance(MINUTE)
  await worker.keep()
  target.script = () => SUCCEEDED
  await pipeline.pass(20_000, worker)
  expect(rig.hasSearched()).toBe(false)

  const handedBack = worker.whenSettled()
  await rig.loseTake(() => worker.keep())
  await handedBack
  await worker.keep()

  expect(await pipeline.lines(schedule)).toEqual(['09:01 succeeded'])
  expect(target.calls.map(({ attempt }) => attempt)).toEqual([1, 2])
  const { attempts } = await readLedger(database.pool)
  expect(attempts.map(({ outcome }) => outcome)).toEqual(['failed', 'succeeded'])
})

test('a run that waits is taken all the same although the reply to a living worker that went for it was lost', async () => {
  const pipeline = await pipelineAt('2026-03-02T09:00:00Z')
  const { target, scheduler } = pipeline
  const schedule = await pipeline.create({ cadence: { kind: 'once', at: NEXT_YEAR } })
  await scheduler.runNow(CALLER, schedule.id)
  await using rig = await startRig(pipeline)
  const { worker } = rig

  const handedBack = worker.whenSettled()
  await rig.loseTake(() => worker.keep())
  await handedBack
  expect(await pipeline.lines(schedule)).toEqual(['09:00 pending'])
  await pipeline.worker('other').keep()

  expect(await pipeline.lines(schedule)).toEqual(['09:00 succeeded'])
  expect(target.calls.map(({ attempt }) => attempt)).toEqual([1])
  expect(await scheduler.get(CALLER, schedule.id)).toMatchObject({ runCount: 1, failureCount: 0 })
})

test('what is in flight when the answer to a commit is lost is not handed back: its target is called once (I12)', async () => {
  const pipeline = await pipelineAt('2026-03-02T09:00:00Z')
  const { clock, target } = pipeline
  const busy = await pipeline.create({ cadence: { kind: 'cron', expression: '1 * * * *', timezone: 'UTC' } })
  await using rig = await startRig(pipeline)
  const { worker, fenced } = rig
  const { script, answer } = held()
  target.script = (context, signal) => (context.scheduleId === busy.id ? script(context, signal) : SUCCEEDED)
  clock.advance(MINUTE)
  await worker.begin()
  const lost = await pipeline.create({ cadence: { kind: 'once', at: '2026-03-02T09:01:05Z' } })
  clock.advance(5000)
  await worker.heartbeat.runOnce()

  const handedBack = worker.whenSettled()
  await rig.loseCommit(
    () => worker.keeper.runOnce(),
    () => whenRunning(pipeline, 2),
  )
  await handedBack
  await worker.begin()
  answer(SUCCEEDED)
  await worker.keeper.whenIdle()

  for (const schedule of [busy, lost]) expect(await pipeline.lines(schedule)).toEqual(['09:01 succeeded'])
  expect(target.calls.map(({ scheduleId }) => scheduleId)).toEqual([busy.id, lost.id])
  expect(fenced).toEqual([])
})

test('what was begun and is about to be dispatched is not handed back either (I12)', async () => {
  const pipeline = await pipelineAt('2026-03-02T09:00:00Z')
  const { clock, scheduler, target } = pipeline
  const [begun, lost] = [await pipeline.create(), await pipeline.create({ cadence: { kind: 'once', at: NEXT_YEAR } })]
  await using rig = await startRig(pipeline)
  const { worker, fenced } = rig
  const { script, answer } = held()
  target.script = (context, signal) => (context.scheduleId === begun.id ? script(context, signal) : SUCCEEDED)
  clock.advance(MINUTE)
  await worker.heartbeat.runOnce()
  await scheduler.runNow(CALLER, lost.id)

  const handedBack = worker.whenSettled()
  let failed: Promise<unknown> | undefined
  // Behind its commit a begin looks at the rights of its runs, and waits. Beside it, the run-now is taken.
  await whileHeld(pipeline, 'lock table carillon.tenants in access exclusive mode', async () => {
    rig.proxy.deafenAt(TAKE)
    failed = worker.keeper.runOnce().catch((error: unknown) => error)
    await whenBlocked(pipeline)
    await whenRunning(pipeline, 2)
    rig.proxy.hangUp()
    while (!rig.hasSearched()) await setImmediate()
  })
  expect(await failed).toMatchObject({ message: expect.stringContaining('Connection terminated') as string })
  await handedBack
  await worker.begin()
  answer(SUCCEEDED)
  await worker.keeper.whenIdle()

  expect(await pipeline.lines(begun)).toEqual(['09:01 succeeded'])
  expect(await pipeline.lines(lost)).toEqual(['09:01 succeeded'])
  expect(target.calls.map(({ scheduleId }) => scheduleId)).toEqual([begun.id, lost.id])
  expect(fenced).toEqual([])
})

test('a commit that Postgres makes only after the first search is found by a later one (I12)', async () => {
  const pipeline = await pipelineAt('2026-03-02T09:00:00Z')
  const { clock, target } = pipeline
  const schedule = await pipeline.create()
  await using rig = await startRig(pipeline)
  const { worker } = rig
  clock.advance(MINUTE)
  await worker.heartbeat.runOnce()

  const handedBack = worker.whenSettled()
  const timers = clock.waiting
  await whileHeld(pipeline, 'lock table carillon.runs in share mode', async () => {
    await rig.loseCommit(
      () => worker.keeper.runOnce(),
      () => whenBlocked(pipeline),
    )
    while (clock.waiting === timers) await setImmediate()
  })
  await whenRunning(pipeline, 1)
  clock.advance(500)
  await handedBack
  await worker.keep()

  expect(await pipeline.lines(schedule)).toEqual(['09:01 succeeded'])
  expect(target.calls).toHaveLength(1)
})

test('a take that Postgres makes only after the first search is found by a later one (I12)', async () => {
  const pipeline = await pipelineAt('2026-03-02T09:00:00Z')
  const { clock, target, scheduler } = pipeline
  const schedule = await pipeline.create({ cadence: { kind: 'once', at: NEXT_YEAR } })
  await scheduler.runNow(CALLER, schedule.id)
  await using rig = await startRig(pipeline)
  const { worker } = rig
  await worker.heartbeat.runOnce()

  const handedBack = worker.whenSettled()
  const timers = clock.waiting
  // It waits for its tables, before it has a transaction id that others could wait for.
  await whileHeld(pipeline, 'lock table carillon.runs in share mode', async () => {
    await rig.loseTake(
      () => worker.keeper.runOnce(),
      () => whenBlocked(pipeline),
    )
    while (!rig.hasSearched() || clock.waiting === timers) await setImmediate()
  })
  await whenRunning(pipeline, 1)
  clock.advance(500)
  await handedBack
  await worker.keep()

  expect(await pipeline.lines(schedule)).toEqual(['09:00 succeeded'])
  expect(target.calls).toHaveLength(1)
})

test.each<[string, (pipeline: Pipeline, worker: TestWorker) => unknown]>([
  ['after a pause', ({ clock }) => clock.advance(500)],
  ['by a worker that is told to stop, without one', (_pipeline, { keeper }) => keeper.drain(MINUTE)],
])('a search that fails is made again %s', async (_when, goOn) => {
  const pipeline = await pipelineAt('2026-03-02T09:00:00Z')
  const { clock, database } = pipeline
  const schedule = await pipeline.create()
  await using rig = await startRig(pipeline)
  const { worker } = rig
  const failed = new Promise<string>((resolve) => {
    worker.events.on('service.failed', ({ service }) => resolve(service))
  })
  clock.advance(MINUTE)
  await worker.heartbeat.runOnce()

  const handedBack = worker.whenSettled()
  await rig.loseCommit(
    () => worker.keeper.runOnce(),
    async () => {
      await whenRunning(pipeline, 1)
      await database.pool.query('revoke select on carillon.runs from carillon_worker')
    },
  )
  expect(await failed).toBe('strays')
  await database.pool.query('grant select on carillon.runs to carillon_worker')
  await Promise.all([goOn(pipeline, worker), handedBack])
  await pipeline.worker('other').keep()

  expect(await pipeline.lines(schedule)).toEqual(['09:01 succeeded'])
})

interface Rig extends AsyncDisposable {
  readonly worker: TestWorker
  readonly fenced: readonly EventMap['attempt.fenced'][]
  readonly proxy: FaultProxy
  /** Lets Postgres hear a commit, and cuts the connection before its answer, once `whenHeard` says so. */
  readonly loseCommit: (begin: () => Promise<unknown>, whenHeard?: () => Promise<void>) => Promise<void>
  /** The same with the statement that takes waiting runs, which is committed by itself. */
  readonly loseTake: (take: () => Promise<unknown>, whenHeard?: () => Promise<void>) => Promise<void>
  /** Whether what runs in the name of the worker has been looked up. */
  readonly hasSearched: () => boolean
}

/** A worker with connections of its own, which the test breaks. */
async function startRig(pipeline: Pipeline): Promise<Rig> {
  const proxy = await startFaultProxy(pipeline.database.url)
  const pool = createPool({ connectionString: proxy.url, role: 'carillon_worker', isPrepared: true })
  const { db, queries } = recordingDb(pool)
  const worker = pipeline.worker('worker', 200, { db })
  const fenced: EventMap['attempt.fenced'][] = []
  worker.events.on('attempt.fenced', (event) => fenced.push(event))
  const loseAnswerTo =
    (text: string): Rig['loseCommit'] =>
    async (take, whenHeard = () => whenRunning(pipeline, 1)) => {
      proxy.deafenAt(text)
      const taken = take()
      await whenHeard()
      proxy.hangUp()
      await expect(taken).rejects.toThrow('Connection terminated')
    }
  return {
    worker,
    fenced,
    proxy,
    loseCommit: loseAnswerTo(COMMIT),
    loseTake: loseAnswerTo(TAKE),
    hasSearched: () => queries.some(({ sql }) => sql.includes('select runs.id, runs.schedule_id')),
    async [Symbol.asyncDispose]() {
      await pool.end()
      await proxy[Symbol.asyncDispose]()
    },
  }
}

/** Resolves once the ledger says that so many runs are under way. */
async function whenRunning({ database }: Pipeline, count: number): Promise<void> {
  for (;;) {
    const { rowCount } = await database.pool.query(`select from carillon.runs where state = 'running'`)
    if (rowCount === count) return
  }
}

test('a doubt that comes as a search ends is searched for, however close', async () => {
  const { workerDb: db } = await pipelineAt('2026-03-02T09:00:00Z')
  const workerId = randomUUID()
  const lease = new Lease(systemClock)
  lease.grant(workerId, systemClock.monotonicMs(), MINUTE)
  for (let turns = 0; turns < 8; turns += 1) {
    const searchedTwice = Promise.withResolvers<void>()
    let searches = 0
    const held = (): [] => {
      searches += 1
      if (searches === 1) void afterTurns(turns).then(doubt)
      else searchedTwice.resolve()
      return []
    }
    const strays = new Strays({ db, clock: systemClock, events: new Events(), lease, held })
    const doubt = (): Promise<unknown> =>
      strays.watch(workerId, () => Promise.reject(new Error('Connection terminated'))).catch(() => undefined)
    await doubt()
    await searchedTwice.promise
    await strays.stop()
  }
})

/** So many turns of the queue of promises. */
async function afterTurns(turns: number): Promise<void> {
  for (let turn = 0; turn < turns; turn += 1) await Promise.resolve()
}
