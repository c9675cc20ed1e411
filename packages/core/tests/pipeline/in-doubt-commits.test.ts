import { randomUUID } from 'node:crypto'
import { setImmediate } from 'node:timers/promises'

import { expect, test } from 'vitest'

import { createDb } from '../../src/db/database.ts'
import { createPool } from '../../src/db/pool.ts'
import { systemClock, type Clock } from '../../src/kernel/clock.ts'
import { Events, type EventMap } from '../../src/kernel/events.ts'
import { Lease } from '../../src/kernel/lease.ts'
import { InDoubtCheck, InDoubtCommits } from '../../src/pipeline/in-doubt-commits.ts'
import type { Target } from '../../src/ports/target.ts'
import { Scheduler } from '../../src/scheduler.ts'
import { Worker } from '../../src/worker.ts'
import { whenBlocked, whileHeld } from '../blocked-statement.ts'
import { createDatabase } from '../database.ts'
import { emptiedPipelines } from '../emptied-pipeline.ts'
import { startFaultProxy, type FaultProxy } from '../fault-proxy.ts'
import { readLedger } from '../ledger-rows.ts'
import { CALLER, MINUTE, type Pipeline, type TestWorker } from '../pipeline.ts'
import { recordingDb } from '../query-plan.ts'
import { NO_HOOKS } from '../run-fence.ts'
import { FAIL, held, ScriptedTarget, SUCCEEDED } from '../scripted-target.ts'
import { takeAs } from '../waits.ts'

const pipelineAt = emptiedPipelines()
const NEXT_YEAR = '2027-03-02T09:00:00Z'
/** With its terminator, because the startup of a connection contains `read committed`. */
const COMMIT = 'commit\0'
/** A part of the statement that takes waiting runs, as a connection prepares it. */
const TAKE = 'for update of schedules skip locked'

test('the run of a begin whose answer to the commit was lost is handed back uncharged, and its slot runs once (I3, I12)', async () => {
  const pipeline = await pipelineAt('2026-03-02T09:00:00Z')
  const { clock, target, database } = pipeline
  const schedule = await pipeline.create()
  await using rig = await startRig(pipeline)
  const { worker } = rig
  clock.advance(MINUTE)
  await worker.heartbeat.runOnce()

  const handedBack = worker.whenSettled()
  await rig.loseCommit(() => worker.loop.runOnce())
  await handedBack
  await worker.runDue()

  expect(await pipeline.lines(schedule)).toEqual(['09:01 succeeded'])
  expect(target.calls.map(({ attempt }) => attempt)).toEqual([1])
  expect((await readLedger(database.pool)).attempts).toMatchObject([{ attempt: 1, outcome: 'succeeded' }])
})

test('the run of a take whose answer was lost is handed back, and its attempt is made once (I12)', async () => {
  const pipeline = await pipelineAt('2026-03-02T09:00:00Z')
  const { clock, target, database } = pipeline
  const schedule = await pipeline.create()
  await using rig = await startRig(pipeline)
  const { worker } = rig
  target.script = () => FAIL
  clock.advance(MINUTE)
  await worker.runDue()
  target.script = () => SUCCEEDED
  await pipeline.pass(20_000, worker)
  expect(rig.hasSearched()).toBe(false)

  const handedBack = worker.whenSettled()
  await rig.loseTake(() => worker.runDue())
  await handedBack
  await worker.runDue()

  expect(await pipeline.lines(schedule)).toEqual(['09:01 succeeded'])
  expect(target.calls.map(({ attempt }) => attempt)).toEqual([1, 2])
  const { attempts } = await readLedger(database.pool)
  expect(attempts.map(({ outcome }) => outcome)).toEqual(['failed', 'succeeded'])
})

test('a worker that gave up writing hands no run back, because a run that it does not hold may have been called (I12)', async () => {
  const pipeline = await pipelineAt('2026-03-02T09:00:00Z')
  const { workerDb: db, clock, scheduler } = pipeline
  const schedule = await pipeline.create({ cadence: { kind: 'once', at: NEXT_YEAR } })
  await scheduler.runNow(CALLER, schedule.id)
  const { events, lease, heartbeat } = pipeline.worker()
  await heartbeat.runOnce()
  const inDoubt = new InDoubtCommits({ db, clock, events, lease, hooks: NO_HOOKS, held: () => [], claims: new Set() })
  await takeAs(pipeline, { lease })

  inDoubt.abandon()
  const workerId = lease.workerId ?? ''
  inDoubt.claimFailed(workerId, new Error('Connection terminated'))
  await inDoubt.stop()

  expect(await pipeline.lines(schedule)).toEqual(['09:00 running'])
})

test('another worker takes a run that was handed back because the answer to its take was lost', async () => {
  const pipeline = await pipelineAt('2026-03-02T09:00:00Z')
  const { target, scheduler } = pipeline
  const schedule = await pipeline.create({ cadence: { kind: 'once', at: NEXT_YEAR } })
  await scheduler.runNow(CALLER, schedule.id)
  await using rig = await startRig(pipeline)
  const { worker } = rig

  const handedBack = worker.whenSettled()
  await rig.loseTake(() => worker.runDue())
  await handedBack
  expect(await pipeline.lines(schedule)).toEqual(['09:00 pending'])
  await pipeline.worker('other').runDue()

  expect(await pipeline.lines(schedule)).toEqual(['09:00 succeeded'])
  expect(target.calls.map(({ attempt }) => attempt)).toEqual([1])
  expect(await scheduler.get(CALLER, schedule.id)).toMatchObject({ runCount: 1, failureCount: 0 })
})

test('a run that is in flight when the answer to a commit is lost is not handed back, and its target is called once (I12)', async () => {
  const pipeline = await pipelineAt('2026-03-02T09:00:00Z')
  const { clock, target } = pipeline
  const busy = await pipeline.create({ cadence: { kind: 'cron', expression: '1 * * * *', timezone: 'UTC' } })
  await using rig = await startRig(pipeline)
  const { worker, fenced } = rig
  const { script, answer } = held()
  target.script = (context, signal) => (context.scheduleId === busy.id ? script(context, signal) : SUCCEEDED)
  clock.advance(MINUTE)
  await worker.startDue()
  const lost = await pipeline.create({ cadence: { kind: 'once', at: '2026-03-02T09:01:05Z' } })
  clock.advance(5000)
  await worker.heartbeat.runOnce()

  const handedBack = worker.whenSettled()
  await rig.loseCommit(
    () => worker.loop.runOnce(),
    () => whenRunning(pipeline, 2),
  )
  await handedBack
  await worker.startDue()
  answer(SUCCEEDED)
  await worker.loop.whenIdle()

  for (const schedule of [busy, lost]) expect(await pipeline.lines(schedule)).toEqual(['09:01 succeeded'])
  expect(target.calls.map(({ scheduleId }) => scheduleId)).toEqual([busy.id, lost.id])
  expect(fenced).toEqual([])
})

test('a run that was begun and is not dispatched yet is not handed back (I12)', async () => {
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
  // After its commit the begin checks permissions, and waits for the lock. Meanwhile the manual run is taken.
  await whileHeld(pipeline, 'lock table carillon.tenants in access exclusive mode', async () => {
    rig.proxy.dropAnswersFrom(TAKE)
    failed = worker.loop.runOnce().catch((error: unknown) => error)
    await whenBlocked(pipeline)
    await whenRunning(pipeline, 2)
    rig.proxy.closeUnanswered()
    while (!rig.hasSearched()) await setImmediate()
  })
  expect(await failed).toMatchObject({ message: expect.stringContaining('Connection terminated') as string })
  await handedBack
  await worker.startDue()
  answer(SUCCEEDED)
  await worker.loop.whenIdle()

  expect(await pipeline.lines(begun)).toEqual(['09:01 succeeded'])
  expect(await pipeline.lines(lost)).toEqual(['09:01 succeeded'])
  expect(target.calls.map(({ scheduleId }) => scheduleId)).toEqual([begun.id, lost.id])
  expect(fenced).toEqual([])
})

test('a begin that Postgres commits only after the first search is found by a later search (I12)', async () => {
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
      () => worker.loop.runOnce(),
      () => whenBlocked(pipeline),
    )
    while (clock.waiting === timers) await setImmediate()
  })
  await whenRunning(pipeline, 1)
  clock.advance(500)
  await handedBack
  await worker.runDue()

  expect(await pipeline.lines(schedule)).toEqual(['09:01 succeeded'])
  expect(target.calls).toHaveLength(1)
})

test('a take that Postgres commits only after the first search is found by a later search (I12)', async () => {
  const pipeline = await pipelineAt('2026-03-02T09:00:00Z')
  const { clock, target, scheduler } = pipeline
  const schedule = await pipeline.create({ cadence: { kind: 'once', at: NEXT_YEAR } })
  await scheduler.runNow(CALLER, schedule.id)
  await using rig = await startRig(pipeline)
  const { worker } = rig
  await worker.heartbeat.runOnce()

  const handedBack = worker.whenSettled()
  const timers = clock.waiting
  // The take waits for a table lock, before it has a transaction id that a search could wait for.
  await whileHeld(pipeline, 'lock table carillon.runs in share mode', async () => {
    await rig.loseTake(
      () => worker.loop.runOnce(),
      () => whenBlocked(pipeline),
    )
    while (!rig.hasSearched() || clock.waiting === timers) await setImmediate()
  })
  await whenRunning(pipeline, 1)
  clock.advance(500)
  await handedBack
  await worker.runDue()

  expect(await pipeline.lines(schedule)).toEqual(['09:00 succeeded'])
  expect(target.calls).toHaveLength(1)
})

test.each<[string, (pipeline: Pipeline, worker: TestWorker) => unknown]>([
  ['after a pause', ({ clock }) => clock.advance(500)],
  ['without a pause when its worker stops', (_pipeline, { loop }) => loop.drain(MINUTE)],
])('a failed search is repeated %s', async (_when, goOn) => {
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
    () => worker.loop.runOnce(),
    async () => {
      await whenRunning(pipeline, 1)
      await database.pool.query('revoke select on carillon.runs from carillon_worker')
    },
  )
  expect(await failed).toBe('in-doubt commits')
  const failure = (): unknown => worker.loop.parts.find(({ name }) => name === 'in-doubt commits')?.failure
  expect(failure()).toMatchObject({ failures: 1, error: 'permission denied for table runs' })
  await database.pool.query('grant select on carillon.runs to carillon_worker')
  await Promise.all([goOn(pipeline, worker), handedBack])
  await worker.loop.drain(MINUTE)
  expect(failure()).toBeUndefined()
  await pipeline.worker('other').runDue()

  expect(await pipeline.lines(schedule)).toEqual(['09:01 succeeded'])
})

/** Assigns the only run of a schedule to a worker that does not know of it, as a restored backup would. */
async function assign(
  { database }: Pick<Pipeline, 'database'>,
  schedule: { readonly id: string },
  workerId = '',
): Promise<void> {
  await database.pool.query(
    `update carillon.runs set state = 'running', attempt_count = attempt_count + 1, worker_id = $2,
       waits_for = null, due_at = null, lane = null
     where schedule_id = $1`,
    [schedule.id, workerId],
  )
}

test('a run that is assigned to a living worker without its knowledge is handed back uncharged within a minute', async () => {
  const pipeline = await pipelineAt('2026-03-02T09:00:00Z')
  const { clock, target, scheduler, database } = pipeline
  const schedule = await pipeline.create({ cadence: { kind: 'once', at: NEXT_YEAR } })
  const worker = pipeline.worker()
  await worker.heartbeat.runOnce()
  await using check = new InDoubtCheck({ clock, events: worker.events, check: () => worker.loop.checkInDoubt() })
  check.start()
  // Two timers wait: those of the lease and of the check.
  while (clock.waiting < 2) await setImmediate()
  await scheduler.runNow(CALLER, schedule.id)
  await assign(pipeline, schedule, worker.lease.workerId)
  const handedBack = worker.whenSettled()

  await pipeline.pass(MINUTE, worker)
  await handedBack
  expect(await pipeline.lines(schedule)).toEqual(['09:00 pending'])
  await worker.runDue()

  expect(await pipeline.lines(schedule)).toEqual(['09:00 succeeded'])
  expect(target.calls.map(({ attempt }) => attempt)).toEqual([1])
  expect((await readLedger(database.pool)).attempts).toMatchObject([{ attempt: 1, outcome: 'succeeded' }])
})

test('a check hands back no run that the worker holds, is about to hold, or held when the check began (I12)', async () => {
  const pipeline = await pipelineAt('2026-03-02T09:00:00Z')
  const { target } = pipeline
  const busy = await pipeline.create({ cadence: { kind: 'cron', expression: '1 * * * *', timezone: 'UTC' } })
  await using rig = await startRig(pipeline)
  const { worker, fenced } = rig
  const { script, answer } = held()
  target.script = (context, signal) => (context.scheduleId === busy.id ? script(context, signal) : SUCCEEDED)
  await pipeline.pass(MINUTE, worker)
  await worker.startDue()
  expect(await worker.loop.checkInDoubt()).toBe(0)

  const begun = await pipeline.create({ cadence: { kind: 'once', at: '2026-03-02T09:01:05Z' } })
  await pipeline.pass(5000, worker)
  const settled = worker.whenSettled()
  const underWay: Promise<unknown>[] = []
  // After its commit the begin checks permissions, and waits for the lock: its run is in the ledger, but not held yet.
  await whileHeld(pipeline, 'lock table carillon.tenants in access exclusive mode', async () => {
    const beginning = worker.loop.runOnce()
    await whenRunning(pipeline, 2)
    underWay.push(worker.loop.checkInDoubt(), beginning)
    answer(SUCCEEDED)
    await settled
  })

  expect(await Promise.all(underWay)).toMatchObject([0, { begun: 1 }])
  await worker.loop.whenIdle()
  for (const schedule of [busy, begun]) expect(await pipeline.lines(schedule)).toEqual(['09:01 succeeded'])
  expect(target.calls).toHaveLength(2)
  expect(fenced).toEqual([])
})

test('an unknown run that cannot be handed back does not hold up another, and counts as a failure until it can', async () => {
  const pipeline = await pipelineAt('2026-03-02T09:00:00Z')
  const { database, scheduler } = pipeline
  const worker = pipeline.worker()
  await worker.heartbeat.runOnce()
  const [bad, good] = [
    await pipeline.create({ cadence: { kind: 'once', at: NEXT_YEAR } }),
    await pipeline.create({ cadence: { kind: 'once', at: NEXT_YEAR } }),
  ]
  for (const schedule of [bad, good]) {
    await scheduler.runNow(CALLER, schedule.id)
    await assign(pipeline, schedule, worker.lease.workerId)
  }
  await database.pool.query('update carillon.runs set attempt_count = 0 where schedule_id = $1', [bad.id])
  const failed = new Promise<EventMap['service.failed']>((resolve) => worker.events.on('service.failed', resolve))

  expect(await worker.loop.checkInDoubt()).toBe(2)
  expect(await failed).toMatchObject({ service: 'in-doubt commits' })
  expect(await pipeline.lines(good)).toEqual(['09:00 pending'])
  const isWritten = worker.whenSettled()
  await database.pool.query('update carillon.runs set attempt_count = 1 where schedule_id = $1', [bad.id])
  await pipeline.pass(500, worker)
  await isWritten

  expect(await pipeline.lines(bad)).toEqual(['09:00 pending'])
})

test('a check finds no run of another worker, and a worker without a lease makes no check', async () => {
  const pipeline = await pipelineAt('2026-03-02T09:00:00Z')
  const schedule = await pipeline.create({ cadence: { kind: 'once', at: NEXT_YEAR } })
  const [worker, other] = [pipeline.worker(), pipeline.worker('other')]
  for (const { heartbeat } of [worker, other]) await heartbeat.runOnce()
  await pipeline.scheduler.runNow(CALLER, schedule.id)
  await assign(pipeline, schedule, worker.lease.workerId)

  expect(await other.loop.checkInDoubt()).toBe(0)
  worker.lease.release()
  expect(await worker.loop.checkInDoubt()).toBe(0)

  expect(await pipeline.lines(schedule)).toEqual(['09:00 running'])
})

test('every worker checks for commits in doubt once a minute', async () => {
  await using database = await createDatabase()
  const minute = Promise.withResolvers<void>()
  let isOver = false
  const clock: Clock = {
    ...systemClock,
    sleep: (ms, signal) => (ms === MINUTE && !isOver ? minute.promise : systemClock.sleep(ms, signal)),
  }
  const target = new ScriptedTarget()
  target.script = () => FAIL
  const targets = new Map<string, Target>([[target.kind, target]])
  const scheduler = new Scheduler({ db: createDb(database.pool), clock, targets })
  const schedule = await scheduler.create(CALLER, {
    name: 'a retry tomorrow',
    cadence: { kind: 'once', at: NEXT_YEAR },
    target: { kind: 'test' },
    policy: { retry: { maxAttempts: 3, baseSeconds: 86_400, capSeconds: 86_400 } },
  })
  await using worker = new Worker({ databaseUrl: database.url, targets: [target], clock })
  const nextSettled = (): Promise<EventMap['attempt.settled']> =>
    new Promise((resolve) => worker.events.on('attempt.settled', resolve))
  const failed = nextSettled()
  await worker.start()
  await scheduler.runNow(CALLER, schedule.id)
  await failed
  const { rows } = await database.pool.query<{ id: string }>('select id from carillon.workers')
  await assign({ database }, schedule, rows[0]?.id)

  const handedBack = nextSettled()
  isOver = true
  minute.resolve()

  expect(await handedBack).toMatchObject({ scheduleId: schedule.id, state: 'retrying' })
})

interface Rig extends AsyncDisposable {
  readonly worker: TestWorker
  readonly fenced: readonly EventMap['attempt.fenced'][]
  readonly proxy: FaultProxy
  /** Lets Postgres execute a commit, drops its answer, and closes the connection once `whenExecuted` resolves. */
  readonly loseCommit: (begin: () => Promise<unknown>, whenExecuted?: () => Promise<void>) => Promise<void>
  /** Does the same with the statement that takes waiting runs, which is a transaction of its own. */
  readonly loseTake: (take: () => Promise<unknown>, whenExecuted?: () => Promise<void>) => Promise<void>
  /** Whether the worker has searched for runs in its name. */
  readonly hasSearched: () => boolean
}

/** Starts a worker with connections of its own, which the test can break. */
async function startRig(pipeline: Pipeline): Promise<Rig> {
  const proxy = await startFaultProxy(pipeline.database.url)
  const pool = createPool({ connectionString: proxy.url, role: 'carillon_worker', isPrepared: true })
  const { db, queries } = recordingDb(pool)
  const worker = pipeline.worker('worker', 200, { db })
  const fenced: EventMap['attempt.fenced'][] = []
  worker.events.on('attempt.fenced', (event) => fenced.push(event))
  const loseAnswerTo =
    (text: string): Rig['loseCommit'] =>
    async (take, whenExecuted = () => whenRunning(pipeline, 1)) => {
      proxy.dropAnswersFrom(text)
      const taken = take()
      await whenExecuted()
      proxy.closeUnanswered()
      await expect(taken).rejects.toThrow('Connection terminated')
    }
  return {
    worker,
    fenced,
    proxy,
    loseCommit: loseAnswerTo(COMMIT),
    loseTake: loseAnswerTo(TAKE),
    hasSearched: () => queries.some(({ text }) => /and runs\.worker_id = \$\d+\s+limit/.test(text)),
    async [Symbol.asyncDispose]() {
      await pool.end()
      await proxy[Symbol.asyncDispose]()
    },
  }
}

/** Resolves once this many runs are running in the ledger. */
async function whenRunning({ database }: Pipeline, count: number): Promise<void> {
  for (;;) {
    const { rowCount } = await database.pool.query(`select from carillon.runs where state = 'running'`)
    if (rowCount === count) return
  }
}

test('a claim that fails while a search ends causes another search, however close the two are', async () => {
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
    const deps = { db, clock: systemClock, events: new Events(), lease, hooks: NO_HOOKS }
    const inDoubt = new InDoubtCommits({ ...deps, held, claims: new Set() })
    const doubt = (): void => inDoubt.claimFailed(workerId, new Error('Connection terminated'))
    doubt()
    await searchedTwice.promise
    await inDoubt.stop()
  }
})

/** Waits for this many turns of the microtask queue. */
async function afterTurns(turns: number): Promise<void> {
  for (let turn = 0; turn < turns; turn += 1) await Promise.resolve()
}
