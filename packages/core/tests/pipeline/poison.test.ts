import { expect, test } from 'vitest'

import { createDb } from '../../src/db/database.ts'
import { createPool } from '../../src/db/pool.ts'
import { Events, type EventMap } from '../../src/kernel/events.ts'
import { Lease } from '../../src/kernel/lease.ts'
import type { Schedule } from '../../src/ledger/records.ts'
import { Heartbeat } from '../../src/pipeline/heartbeat.ts'
import type { Pipeline as WorkerPipeline } from '../../src/pipeline/pipeline.ts'
import type { Outcome, Target } from '../../src/ports/target.ts'
import { emptiedPipelines } from '../emptied-pipeline.ts'
import { fakeTimers, startFaultProxy } from '../fault-proxy.ts'
import { readLedger } from '../ledger-rows.ts'
import { pipelineOf } from '../pipeline-parts.ts'
import { CALLER, HEARTBEAT_MS, MINUTE, type Pipeline } from '../pipeline.ts'
import { heldEach, SUCCEEDED, type Script } from '../scripted-target.ts'
import { sql } from '../sql.ts'

const pipelineAt = emptiedPipelines()
const ONE_LATER = { kind: 'once', at: '2026-03-02T09:01:10Z' }
/** The time limit of the driver for an answer. */
const QUERY_TIMEOUT_MS = 30_000

async function corrupt({ db }: Pipeline, schedule: Schedule, column: string, json: string): Promise<void> {
  await sql`
    update carillon.schedule_revisions set ${sql.id(column)} = ${json}::json
    where schedule_id = ${schedule.id}`.execute(db)
}

test.each([
  ['cadence_cron', '{"kind":"cron","expression":"not cron","timezone":"UTC"}'],
  ['cadence_cron', '{"kind":"cron","expression":"* * * * *","timezone":"Mars/Olympus"}'],
  ['cadence_cron', '{"kind":"sundial"}'],
  ['cadence_cron', '[]'],
  ['cadence_cron', '"* * * * *"'],
  ['policy', '{}'],
  ['policy', '{"overlap":"maybe"}'],
  ['policy', 'null'],
  ['policy', '7'],
])('only the schedule whose %s is %s fails: its run has the reason, and it is paused (I6)', async (column, json) => {
  const pipeline = await pipelineAt('2026-03-02T09:00:00Z')
  const { clock, scheduler, database } = pipeline
  const [before, poison, after] = [await pipeline.create(), await pipeline.create(), await pipeline.create()]
  await corrupt(pipeline, poison, column, json)
  clock.advance(MINUTE)

  await pipeline.worker().runDue()

  for (const healthy of [before, after]) expect(await pipeline.lines(healthy)).toEqual(['09:01 succeeded'])
  const { runs, schedules, changes } = await readLedger(database.pool)
  expect(runs.filter(({ schedule_id }) => schedule_id === poison.id)).toMatchObject([
    { state: 'failed', attempt_count: 0, error: { code: 'unreadable_spec', message: expect.any(String) as string } },
  ])
  expect(schedules.find(({ id }) => id === poison.id)).toMatchObject({
    state: 'paused',
    paused_reason: 'auto:unreadable_spec',
    failure_count: '1',
  })
  expect(changes.at(-1)).toMatchObject({ schedule_id: poison.id, change: 'paused', reason: 'auto:unreadable_spec' })
  expect(await scheduler.get(CALLER, before.id)).toMatchObject({ state: 'active' })
})

test('a schedule whose revision is missing is paused and does not block its lane', async () => {
  const pipeline = await pipelineAt('2026-03-02T09:00:00Z')
  const { clock, database } = pipeline
  const poison = await pipeline.create()
  const healthy = await pipeline.create()
  await database.pool.query('delete from carillon.schedule_revisions where schedule_id = $1', [poison.id])
  clock.advance(MINUTE)

  await pipeline.worker('narrow', 1).runDue()
  await pipeline.worker('narrow', 1).runDue()

  expect(await pipeline.lines(healthy)).toEqual(['09:01 succeeded'])
  const { schedules } = await readLedger(database.pool)
  expect(schedules.find(({ id }) => id === poison.id)).toMatchObject({ state: 'paused' })
})

test('a target whose spec can no longer be read fails only its own run', async () => {
  const pipeline = await pipelineAt('2026-03-02T09:00:00Z')
  const { clock, scheduler, target } = pipeline
  const [poison, healthy] = [await pipeline.create(), await pipeline.create()]
  await corrupt(pipeline, poison, 'target', '{"kind":"test","timeoutSeconds":"soon"}')
  clock.advance(MINUTE)

  await pipeline.worker().runDue()

  expect(await pipeline.lines(healthy)).toEqual(['09:01 succeeded'])
  const [run] = await pipeline.ledger(poison)
  expect(await scheduler.getRun(CALLER, run?.id ?? '')).toMatchObject({
    state: 'failed',
    error: { code: 'unreadable_target' },
    attempts: [{ outcome: 'malformed' }],
  })
  expect(target.calls).toHaveLength(1)
})

const CIRCULAR: { self?: unknown } = {}
CIRCULAR.self = CIRCULAR

test.each<[string, Script, string, object]>([
  [
    'throws an error',
    () => {
      throw new Error('no')
    },
    'retrying',
    { code: 'target_threw', message: 'no' },
  ],
  [
    'throws a string',
    () => {
      throw 'no' as unknown as Error
    },
    'retrying',
    { code: 'target_threw', message: 'no' },
  ],
  ['rejects', () => Promise.reject(new Error('no')), 'retrying', { code: 'target_threw', message: 'no' }],
  ['returns nothing', () => undefined as unknown as Outcome, 'failed', { code: 'unreadable_outcome' }],
  ['returns null', () => null as unknown as Outcome, 'failed', { code: 'unreadable_outcome' }],
  [
    'returns an unknown kind of outcome',
    () => ({ kind: 'fine' }) as unknown as Outcome,
    'failed',
    { code: 'unreadable_outcome' },
  ],
  [
    'fails without an error',
    () => ({ kind: 'failed' }) as unknown as Outcome,
    'failed',
    { code: 'unreadable_outcome' },
  ],
  [
    'returns a circular result',
    () => ({ kind: 'succeeded', result: CIRCULAR as never }),
    'failed',
    { code: 'unreadable_outcome' },
  ],
  [
    'returns a big integer',
    () => ({ kind: 'succeeded', result: 1n as never }),
    'failed',
    { code: 'unreadable_outcome' },
  ],
])('a target that %s fails only its own attempt', async (_name, script, state, error) => {
  const pipeline = await pipelineAt('2026-03-02T09:00:00Z')
  const { clock, target } = pipeline
  const [poison, healthy] = [await pipeline.create(), await pipeline.create()]
  target.script = (context, signal) => (context.scheduleId === poison.id ? script(context, signal) : SUCCEEDED)
  clock.advance(MINUTE)

  await pipeline.worker().runDue()

  expect(await pipeline.lines(healthy)).toEqual(['09:01 succeeded'])
  expect(await pipeline.ledger(poison)).toMatchObject([{ state, error }])
})

test.each([
  ['text that jsonb would reject', 'a\u0000b\ud800'],
  ['a deeply nested list', nested(2000)],
])('a result of %s is stored', async (_name, result) => {
  const pipeline = await pipelineAt('2026-03-02T09:00:00Z')
  const { clock, target } = pipeline
  const schedule = await pipeline.create()
  target.script = () => ({ kind: 'succeeded', result: result as string })
  clock.advance(MINUTE)

  await pipeline.worker().runDue()

  expect(await pipeline.lines(schedule)).toEqual(['09:01 succeeded'])
})

function nested(levels: number): unknown {
  return Array.from({ length: levels }).reduce<unknown>((inner) => [inner], 0)
}

/** Throws once when it is read, as faulty code would. */
class FaultyTargets extends Map<string, Target> {
  faults = 1

  override get(kind: string): Target | undefined {
    if (this.faults > 0) {
      this.faults -= 1
      throw new TypeError('a fault in our code')
    }
    return super.get(kind)
  }
}

test('a fault in the worker’s own code fails one attempt and is reported; the run and the worker continue', async () => {
  const pipeline = await pipelineAt('2026-03-02T09:00:00Z')
  const { clock, workerDb: db, targets, target, scheduler } = pipeline
  const { events, lease, heartbeat } = pipeline.worker()
  const loop = pipelineOf({ db, clock, events, lease, targets: new FaultyTargets(targets) })
  const emitted: unknown[] = []
  events.on('service.failed', ({ service, error }) => emitted.push([service, (error as Error).message]))
  const [poison, healthy] = [await pipeline.create(), await pipeline.create({ cadence: ONE_LATER })]
  clock.advance(MINUTE)
  await heartbeat.runOnce()
  await loop.runOnce()
  await loop.whenIdle()

  expect(emitted).toEqual([['dispatcher', 'a fault in our code']])
  expect(loop.inFlight).toBe(0)
  const [run] = await pipeline.ledger(poison)
  expect(await scheduler.getRun(CALLER, run?.id ?? '')).toMatchObject({
    state: 'retrying',
    waitsFor: 'retry',
    attempts: [{ outcome: 'failed', error: { code: 'dispatch_failed', message: 'a fault in our code' } }],
  })
  clock.advance(10_000)
  await heartbeat.runOnce()
  loop.wake()
  await loop.runOnce()
  await loop.whenIdle()

  expect(await pipeline.lines(poison)).toEqual(['09:01 succeeded'])
  expect(await pipeline.lines(healthy)).toEqual(['09:01 succeeded'])
  expect(target.calls).toHaveLength(2)
})

test('a listener that throws does not keep a settlement from being written, and the error is reported', async () => {
  const pipeline = await pipelineAt('2026-03-02T09:00:00Z')
  const worker = pipeline.worker()
  const emitted: string[] = []
  worker.events.on('service.failed', ({ service }) => emitted.push(service))
  worker.events.on('attempt.settled', () => {
    throw new Error('no')
  })
  const schedule = await pipeline.create()

  for (let slot = 0; slot < 2; slot += 1) {
    pipeline.clock.advance(MINUTE)
    await worker.runDue()
  }

  expect(await pipeline.lines(schedule)).toEqual(['09:01 succeeded', '09:02 succeeded'])
  expect(emitted).toEqual(['listener of attempt.settled', 'listener of attempt.settled'])
})

test('an attempt that was inserted by hand is not overwritten, and does not hold up settlements (I2)', async () => {
  const pipeline = await pipelineAt('2026-03-02T09:00:00Z')
  const { clock, target, database } = pipeline
  const { script, answers } = heldEach()
  target.script = script
  const [poison, healthy] = [await pipeline.create(), await pipeline.create()]
  const worker = pipeline.worker()
  clock.advance(MINUTE)
  await worker.startDue()
  await database.pool.query(
    `insert into carillon.attempts select schedule_id, scheduled_for, 1, tenant_id, project_id, id, 'lost', now(), now()
     from carillon.runs where schedule_id = $1`,
    [poison.id],
  )

  for (const answer of answers) answer(SUCCEEDED)
  await worker.loop.whenIdle()

  for (const schedule of [poison, healthy]) expect(await pipeline.lines(schedule)).toEqual(['09:01 succeeded'])
  const { attempts } = await readLedger(database.pool)
  expect(attempts.map(({ outcome }) => String(outcome)).toSorted()).toEqual(['lost', 'succeeded'])
})

test('a line that was inserted by hand is not overwritten, and its schedule continues with the next slot (I2)', async () => {
  const pipeline = await pipelineAt('2026-03-02T09:00:00Z')
  const { clock, target, database } = pipeline
  const [poison, healthy] = [await pipeline.create(), await pipeline.create()]
  clock.advance(MINUTE)
  await database.pool.query(
    `insert into carillon.runs
       (schedule_id, scheduled_for, id, tenant_id, project_id, revision, trigger, state, begun_at, completed_at)
     select id, next_slot_at, gen_random_uuid(), tenant_id, project_id, 1, 'schedule', 'succeeded', now(), now()
     from carillon.schedules where id = $1`,
    [poison.id],
  )

  await pipeline.worker().runDue()
  clock.advance(MINUTE)
  await pipeline.worker('later').runDue()

  expect(await pipeline.lines(poison)).toEqual(['09:01 succeeded', '09:02 succeeded'])
  expect(await pipeline.lines(healthy)).toEqual(['09:01 succeeded', '09:02 succeeded'])
  expect(target.calls).toHaveLength(3)
})

test('a settlement whose connection is killed is written once, later (I4)', async () => {
  const pipeline = await pipelineAt('2026-03-02T09:00:00Z')
  const { clock, target, database } = pipeline
  const { script, answers } = heldEach()
  target.script = script
  const schedule = await pipeline.create({ policy: { overlap: 'queue' } })
  await using rig = await startRig(pipeline, database.url)
  clock.advance(MINUTE)
  await rig.beat()
  await rig.loop.runOnce()
  await target.whenCalled(1)
  const holder = await database.pool.connect()
  await holder.query('begin')
  await holder.query('select from carillon.schedules for update')

  answers[0]?.(SUCCEEDED)
  await killBlockedSessions(database.pool)
  await rig.whenFailed
  await holder.query('rollback')
  holder.release()
  clock.advance(1000)
  await rig.loop.whenIdle()

  expect(await pipeline.lines(schedule)).toEqual(['09:01 succeeded'])
  expect((await readLedger(database.pool)).attempts).toHaveLength(1)
  expect(rig.fenced).toEqual([])
})

test('a settlement whose answer to the commit was lost is not written twice (I4, I12)', async () => {
  const pipeline = await pipelineAt('2026-03-02T09:00:00Z')
  const { clock, target, database } = pipeline
  const { script, answers } = heldEach()
  target.script = script
  const schedule = await pipeline.create({ policy: { overlap: 'queue' } })
  await using proxy = await startFaultProxy(database.url)
  await using rig = await startRig(pipeline, proxy.url)
  clock.advance(MINUTE)
  await rig.beat()
  await rig.loop.runOnce()
  await target.whenCalled(1)

  proxy.dropAnswersFrom('commit')
  using timers = fakeTimers()
  answers[0]?.({ kind: 'failed', error: { code: 'test', message: 'no' }, retryable: false })
  while ((await pipeline.lines(schedule))[0] !== '09:01 failed');
  await timers.advance(QUERY_TIMEOUT_MS)
  await rig.whenFailed
  const before = await readLedger(database.pool)
  clock.advance(1000)
  await rig.loop.whenIdle()

  expect(await readLedger(database.pool)).toEqual(before)
  expect(await pipeline.lines(schedule)).toEqual(['09:01 failed'])
  expect(before.schedules).toMatchObject([{ failure_count: '1', consecutive_failures: 1 }])
  expect(rig.fenced).toHaveLength(1)
})

interface Rig extends AsyncDisposable {
  readonly loop: WorkerPipeline
  readonly beat: () => Promise<unknown>
  /** Resolves once the settle queue has failed to write. */
  readonly whenFailed: Promise<void>
  readonly fenced: EventMap['attempt.fenced'][]
}

/** A pipeline loop with connections of its own, which the test can break. */
async function startRig({ clock, targets, workerDb: db }: Pipeline, connectionString: string): Promise<Rig> {
  const pool = createPool({ connectionString, role: 'carillon_worker', maxConnections: 2, isPrepared: true })
  const [events, lease] = [new Events(), new Lease(clock)]
  const fenced: EventMap['attempt.fenced'][] = []
  events.on('attempt.fenced', (event) => fenced.push(event))
  const failed = Promise.withResolvers<void>()
  events.on('service.failed', ({ service }) => service === 'settle queue' && failed.resolve())
  const heartbeat = new Heartbeat(
    { db, clock, events, lease, failing: () => null, onCancel: () => undefined },
    { name: 'rig', targetKinds: ['test'], heartbeatMs: HEARTBEAT_MS },
  )
  const deps = { db: createDb(pool), clock, targets, events, lease }
  return {
    loop: pipelineOf(deps),
    beat: () => heartbeat.runOnce(),
    whenFailed: failed.promise,
    fenced,
    [Symbol.asyncDispose]: () => pool.end(),
  }
}

/** Ends every session that waits for a lock, as soon as there is one. */
async function killBlockedSessions(pool: Pipeline['database']['pool']): Promise<void> {
  for (;;) {
    const { rows } = await pool.query(
      `select pg_terminate_backend(pid) from pg_stat_activity
       where datname = current_database() and wait_event_type = 'Lock'`,
    )
    if (rows.length > 0) return
  }
}
