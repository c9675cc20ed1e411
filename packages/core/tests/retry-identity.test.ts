import { sql } from 'kysely'
import { expect, test } from 'vitest'
import { z } from 'zod'

import { idempotencyKey } from '../src/keys.ts'
import type { Target } from '../src/target.ts'
import { emptiedPipelines, jobKeys } from './emptied-pipeline.ts'
import { CALLER, MINUTE, type Pipeline } from './pipeline.ts'
import { FAIL, ScriptedTarget, SUCCEEDED } from './scripted-target.ts'

const pipelineAt = emptiedPipelines()
const SLOT = Date.parse('2026-03-02T10:00:00Z')
const HOURLY = { kind: 'cron', expression: '0 * * * *', timezone: 'UTC' }

/** A schedule whose 10:00 has failed once, and succeeds when it is tried again. */
async function setup() {
  const pipeline = await pipelineAt('2026-03-02T09:30:00Z')
  const worker = pipeline.worker()
  const schedule = await pipeline.create({ cadence: HOURLY, target: { kind: 'test', body: 'first' } })
  pipeline.target.script = ({ attempt }) => (attempt === 1 ? FAIL : SUCCEEDED)
  pipeline.clock.advance(30 * MINUTE)
  await worker.keep()
  return { pipeline, worker, schedule, target: pipeline.target, scheduler: pipeline.scheduler }
}

/** Takes what a revision says out of the hands of the scheduler, as an older release might have written it. */
async function rewrite({ db }: Pipeline, { id }: { id: string }, column: string, json: string): Promise<void> {
  await sql`
    update carillon.schedule_revisions set ${sql.ref(column)} = ${json}::json where schedule_id = ${id}`.execute(db)
}

test('every attempt has the run id, the key and the body of the revision that began it (I5, E-43, A-33)', async () => {
  const { pipeline, worker, schedule, target, scheduler } = await setup()

  await scheduler.edit(CALLER, schedule.id, { target: { kind: 'test', body: 'second' } }, { revision: 1 })
  pipeline.clock.advance(10_000)
  await worker.doJobs()
  pipeline.clock.advance(60 * MINUTE - 10_000)
  target.script = () => SUCCEEDED
  await worker.keep()

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

test('the backoff, too, follows the revision that began the run (I5)', async () => {
  const { pipeline, worker, schedule, target, scheduler } = await setup()
  target.script = () => FAIL

  await scheduler.edit(CALLER, schedule.id, { policy: { retry: { maxAttempts: 1 } } }, { revision: 1 })
  pipeline.clock.advance(10_000)
  await worker.doJobs()

  expect(await pipeline.ledger(schedule)).toMatchObject([{ state: 'retrying', attemptCount: 2 }])
})

test('a retry is asked of workers that serve the kind it began with, whatever the schedule calls now (I5)', async () => {
  const { pipeline, worker, schedule, target, scheduler } = await setup()
  const other = new ScriptedTarget()
  Object.assign(other, { kind: 'other', schema: z.looseObject({ kind: z.literal('other') }) })
  const targets = pipeline.targets as Map<string, Target>
  targets.set('other', other)
  target.script = () => FAIL

  await scheduler.edit(CALLER, schedule.id, { target: { kind: 'other' } }, { revision: 1 })
  pipeline.clock.advance(10_000)
  await worker.doJobs()

  const { rows } = await sql<{ task_identifier: string }>`select task_identifier from carillon_jobs.jobs`.execute(
    pipeline.db,
  )
  expect(rows).toEqual([{ task_identifier: 'attempt.test' }])
})

test('a kind of target that no longer exists fails its run alone, without a retry', async () => {
  const { pipeline, worker, schedule } = await setup()
  const healthy = await pipeline.create({ cadence: HOURLY })
  await sql`
    update carillon.schedule_revisions set target_kind = 'gone' where schedule_id = ${schedule.id}`.execute(pipeline.db)

  pipeline.clock.advance(10_000)
  await worker.doJobs()
  pipeline.clock.advance(60 * MINUTE - 10_000)
  pipeline.target.script = () => SUCCEEDED
  await worker.keep()

  const [run] = await pipeline.ledger(schedule)
  expect(await pipeline.scheduler.getRun(CALLER, run?.id ?? '')).toMatchObject({
    state: 'failed',
    attempts: [{ outcome: 'failed' }, { outcome: 'malformed', error: { code: 'unknown_target_kind' } }],
  })
  expect(await pipeline.lines(healthy)).toEqual(['11:00 succeeded'])
})

test('a spec that its target can no longer read fails its run alone, without a retry', async () => {
  const { pipeline, worker, schedule } = await setup()
  const healthy = await pipeline.create({ cadence: HOURLY })
  await rewrite(pipeline, schedule, 'target', '{"kind":"test","timeoutSeconds":"soon"}')

  pipeline.clock.advance(60 * MINUTE)
  pipeline.target.script = () => SUCCEEDED
  await worker.keep()

  expect(await pipeline.ledger(schedule)).toMatchObject([
    { state: 'failed', reason: 'superseded' },
    { state: 'failed', attemptCount: 1, error: { code: 'unreadable_target' } },
  ])
  expect(await pipeline.lines(healthy)).toEqual(['11:00 succeeded'])
  expect(await jobKeys(pipeline)).toEqual([])
})

test.each([
  { column: 'cadence_cron', json: '{"kind":"cron","expression":"whenever","timezone":"UTC"}' },
  { column: 'policy', json: '{"overlap":"perhaps"}' },
])(
  'a schedule whose $column can no longer be read is paused with its reason, its slot says why, and no other notices',
  async ({ column, json }) => {
    const { pipeline, worker, schedule } = await setup()
    const healthy = await pipeline.create({ cadence: HOURLY })
    await rewrite(pipeline, schedule, column, json)

    pipeline.clock.advance(60 * MINUTE)
    pipeline.target.script = () => SUCCEEDED
    await worker.keep()

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
  await worker.doJobs()

  expect(await pipeline.ledger(schedule)).toMatchObject([{ state: 'failed', attemptCount: 2 }])
})
