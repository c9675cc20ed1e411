import { expect, test } from 'vitest'
import { z } from 'zod'

import { idempotencyKey } from '../../src/kernel/ids.ts'
import type { Target } from '../../src/ports/target.ts'
import { emptiedPipelines } from '../emptied-pipeline.ts'
import { CALLER, HEARTBEAT_MS, MINUTE, type Pipeline } from '../pipeline.ts'
import { FAIL, ScriptedTarget, SUCCEEDED } from '../scripted-target.ts'
import { sql } from '../sql.ts'
import { listWaits } from '../waits.ts'

const pipelineAt = emptiedPipelines()
const SLOT = Date.parse('2026-03-02T10:00:00Z')
const HOURLY = { kind: 'cron', expression: '0 * * * *', timezone: 'UTC' }

/** A schedule whose run of 10:00 has failed once and succeeds when it is retried. */
async function setup() {
  const pipeline = await pipelineAt('2026-03-02T09:30:00Z')
  const worker = pipeline.worker()
  const schedule = await pipeline.create({ cadence: HOURLY, target: { kind: 'test', body: 'first' } })
  pipeline.target.script = ({ attempt }) => (attempt === 1 ? FAIL : SUCCEEDED)
  pipeline.clock.advance(30 * MINUTE)
  await worker.runDue()
  return { pipeline, worker, schedule, target: pipeline.target, scheduler: pipeline.scheduler }
}

/** Overwrites a column of a revision with a value that only another release could have written. */
async function rewrite({ db }: Pipeline, { id }: { id: string }, column: string, json: string): Promise<void> {
  await sql`
    update carillon.schedule_revisions set ${sql.id(column)} = ${json}::json where schedule_id = ${id}`.execute(db)
}

test('every attempt has the run id, the key and the body of the revision that began it (I5)', async () => {
  const { pipeline, worker, schedule, target, scheduler } = await setup()

  await scheduler.edit(CALLER, schedule.id, { target: { kind: 'test', body: 'second' } }, { revision: 1 })
  pipeline.clock.advance(10_000)
  await worker.runDue()
  pipeline.clock.advance(60 * MINUTE - 10_000)
  target.script = () => SUCCEEDED
  await worker.runDue()

  const [first, second, next] = target.calls
  expect([first?.attempt, second?.attempt, next?.attempt]).toEqual([1, 2, 1])
  expect([first?.spec, second?.spec, next?.spec]).toMatchObject([
    { body: 'first' },
    { body: 'first' },
    { body: 'second' },
  ])
  expect(second?.runId).toBe(first?.runId)
  expect(next?.runId).not.toBe(first?.runId)
  expect([first, second, next].map((call) => call?.idempotencyKey)).toEqual([
    idempotencyKey(schedule.id, SLOT),
    idempotencyKey(schedule.id, SLOT),
    idempotencyKey(schedule.id, SLOT + 60 * MINUTE),
  ])
  expect((await pipeline.ledger(schedule)).map(({ revision }) => revision)).toEqual([1, 2])
})

test('the backoff follows the revision that began the run (I5)', async () => {
  const { pipeline, worker, schedule, target, scheduler } = await setup()
  target.script = () => FAIL

  await scheduler.edit(CALLER, schedule.id, { policy: { retry: { maxAttempts: 1 } } }, { revision: 1 })
  pipeline.clock.advance(10_000)
  await worker.runDue()

  expect(await pipeline.ledger(schedule)).toMatchObject([{ state: 'retrying', attemptCount: 2 }])
})

test('a retry waits in the lane of its own target kind, even if an edit changed the kind of the schedule (I5)', async () => {
  const { pipeline, worker, schedule, target, scheduler } = await setup()
  const other = new ScriptedTarget()
  Object.assign(other, { kind: 'other', schema: z.looseObject({ kind: z.literal('other') }) })
  const targets = pipeline.targets as Map<string, Target>
  targets.set('other', other)
  targets.delete('test')
  const otherKindWorker = pipeline.worker('serves only the other kind')
  targets.set('test', target)
  target.script = ({ attempt }) => (attempt < 3 ? FAIL : SUCCEEDED)

  await scheduler.edit(CALLER, schedule.id, { target: { kind: 'other' } }, { revision: 1 })
  for (const waitMs of [10_000, 20_000]) {
    const { rows } = await sql`
      select runs.lane = carillon.lane_of('test', runs.tenant_id) as is_of_test,
        schedules.lane = carillon.lane_of('other', runs.tenant_id) as is_other_now
      from carillon.runs join carillon.schedules on schedules.id = runs.schedule_id`.execute(pipeline.db)
    expect(rows).toEqual([{ is_of_test: true, is_other_now: true }])
    pipeline.clock.advance(waitMs)
    await otherKindWorker.runDue()
    expect(await pipeline.ledger(schedule)).toMatchObject([{ state: 'retrying' }])
    await worker.runDue()
  }

  expect(target.calls.map(({ attempt }) => attempt)).toEqual([1, 2, 3])
  expect(other.calls).toEqual([])
  expect(await pipeline.lines(schedule)).toEqual(['10:00 succeeded'])
})

test('a run that is rescued or handed back after an edit of the kind waits in the lane of its own kind (I5)', async () => {
  const { pipeline, schedule, target, scheduler } = await setup()
  const other = new ScriptedTarget()
  Object.assign(other, { kind: 'other', schema: z.looseObject({ kind: z.literal('other') }) })
  const targets = pipeline.targets as Map<string, Target>
  const laneOfRun = async (): Promise<unknown> => {
    const { rows } = await sql<{ is_of_test: boolean }>`
      select lane = carillon.lane_of('test', tenant_id) as is_of_test from carillon.runs`.execute(pipeline.db)
    return rows.map(({ is_of_test }) => is_of_test)
  }
  const [dying, leaving] = [pipeline.worker('dying'), pipeline.worker('leaving')]
  targets.set('other', other)
  await scheduler.edit(CALLER, schedule.id, { target: { kind: 'other' } }, { revision: 1 })
  target.script = () => new Promise(() => undefined)
  pipeline.clock.advance(10_000)
  await dying.startDue()
  dying.process.stop()

  pipeline.clock.advance(3 * HEARTBEAT_MS)
  expect(await leaving.rescuer.runOnce()).toMatchObject({ rescued: 1 })
  expect(await laneOfRun()).toEqual([true])
  await leaving.startDue()
  const drained = leaving.loop.drain(0)
  pipeline.clock.advance(1)
  await drained

  expect(await laneOfRun()).toEqual([true])
  expect(target.calls.map(({ attempt }) => attempt)).toEqual([1, 2, 3])
})

test('a waiting run whose revision was deleted is taken, fails with an error, and does not hold up other runs', async () => {
  const { pipeline, worker, schedule } = await setup()
  const healthy = await pipeline.create({ cadence: HOURLY })
  const [run] = await pipeline.ledger(schedule)
  await pipeline.scheduler.edit(CALLER, schedule.id, { name: 'another' }, { revision: 1 })
  await sql`delete from carillon.schedule_revisions where schedule_id = ${schedule.id} and revision = 1`.execute(
    pipeline.db,
  )

  pipeline.clock.advance(10_000)
  await worker.runDue()
  pipeline.clock.advance(60 * MINUTE - 10_000)
  pipeline.target.script = () => SUCCEEDED
  await worker.runDue()

  expect(await pipeline.scheduler.getRun(CALLER, run?.id ?? '')).toMatchObject({
    state: 'failed',
    error: { code: 'unreadable_target' },
    attempts: [{ outcome: 'failed' }, { outcome: 'malformed', error: { code: 'unreadable_target' } }],
  })
  expect(await pipeline.lines(schedule)).toEqual(['10:00 failed', '11:00 succeeded'])
  expect(await pipeline.lines(healthy)).toEqual(['11:00 succeeded'])
})

test('a run whose target kind no longer exists fails without a retry, and no other run does', async () => {
  const { pipeline, worker, schedule } = await setup()
  const healthy = await pipeline.create({ cadence: HOURLY })
  await sql`
    update carillon.schedule_revisions set target_kind = 'gone' where schedule_id = ${schedule.id}`.execute(pipeline.db)

  pipeline.clock.advance(10_000)
  await worker.runDue()
  pipeline.clock.advance(60 * MINUTE - 10_000)
  pipeline.target.script = () => SUCCEEDED
  await worker.runDue()

  const [run] = await pipeline.ledger(schedule)
  expect(await pipeline.scheduler.getRun(CALLER, run?.id ?? '')).toMatchObject({
    state: 'failed',
    attempts: [{ outcome: 'failed' }, { outcome: 'malformed', error: { code: 'unknown_target_kind' } }],
  })
  expect(await pipeline.lines(healthy)).toEqual(['11:00 succeeded'])
})

test('a run whose spec its target can no longer read fails without a retry, and no other run does', async () => {
  const { pipeline, worker, schedule } = await setup()
  const healthy = await pipeline.create({ cadence: HOURLY })
  await rewrite(pipeline, schedule, 'target', '{"kind":"test","timeoutSeconds":"soon"}')
  // The retry is due after the next slot. Otherwise either of the two might be claimed first.
  await sql`update carillon.runs set due_at = due_at + interval '2 hours' where due_at is not null`.execute(pipeline.db)

  pipeline.clock.advance(60 * MINUTE)
  pipeline.target.script = () => SUCCEEDED
  await worker.runDue()

  expect(await pipeline.ledger(schedule)).toMatchObject([
    { state: 'failed', reason: 'superseded' },
    { state: 'failed', attemptCount: 1, error: { code: 'unreadable_target' } },
  ])
  expect(await pipeline.lines(healthy)).toEqual(['11:00 succeeded'])
  expect(await listWaits(pipeline)).toEqual([])
})

test.each([
  { column: 'cadence_cron', json: '{"kind":"cron","expression":"whenever","timezone":"UTC"}' },
  { column: 'policy', json: '{"overlap":"perhaps"}' },
])(
  'a schedule whose $column can no longer be read fails its slot and is paused with the reason, and no other is affected',
  async ({ column, json }) => {
    const { pipeline, worker, schedule } = await setup()
    const healthy = await pipeline.create({ cadence: HOURLY })
    await rewrite(pipeline, schedule, column, json)

    pipeline.clock.advance(60 * MINUTE)
    pipeline.target.script = () => SUCCEEDED
    await worker.runDue()

    expect((await pipeline.ledger(schedule)).at(-1)).toMatchObject({
      scheduledFor: SLOT + 60 * MINUTE,
      state: 'failed',
      attemptCount: 0,
      error: { code: 'unreadable_spec' },
    })
    expect(await pipeline.scheduler.get(CALLER, schedule.id)).toMatchObject({
      state: 'paused',
      pausedReason: 'auto:unreadable_spec',
      pausedBy: 'system:carillon',
    })
    expect(await pipeline.lines(healthy)).toEqual(['11:00 succeeded'])
  },
)

test('a run whose policy can no longer be read gets no second attempt', async () => {
  const { pipeline, worker, schedule, target } = await setup()
  target.script = () => FAIL
  await rewrite(pipeline, schedule, 'policy', '{}')

  pipeline.clock.advance(10_000)
  await worker.runDue()

  expect(await pipeline.ledger(schedule)).toMatchObject([{ state: 'failed', attemptCount: 2 }])
})
