import { describe, expect, test } from 'vitest'

import type { AuditCounts } from '../../src/audit/auditor.ts'
import type { Schedule } from '../../src/ledger/records.ts'
import { whileHeld } from '../blocked-statement.ts'
import { emptiedPipelines } from '../emptied-pipeline.ts'
import { CALLER, MINUTE, type Pipeline, type TestWorker } from '../pipeline.ts'
import { FAIL, held, SUCCEEDED } from '../scripted-target.ts'
import { sql } from '../sql.ts'
import { TestAuditor } from '../test-auditor.ts'

const pipelineAt = emptiedPipelines()

const DAILY = { cadence: { kind: 'cron', expression: '0 9 * * *', timezone: 'UTC' } }
const LATER = { retry: { maxAttempts: 3, baseSeconds: 36_000, capSeconds: 36_000 } }
const HOLD = 'select from carillon.schedules for update'

async function audit({ workerDb: db, clock, events }: Pipeline): Promise<Record<string, number>> {
  const { findings }: AuditCounts = await new TestAuditor({ db, clock, events }).audit()
  return Object.fromEntries(Object.entries(findings).filter(([, count]) => count > 0))
}

async function detailsOf({ scheduler }: Pipeline): Promise<string[]> {
  return (await scheduler.findings(CALLER)).map(({ detail }) => detail)
}

/** Sets up a run of 09:00 that waits for its retry, at 09:05. */
async function setup(concurrency = 200): Promise<{ pipeline: Pipeline; worker: TestWorker; schedule: Schedule }> {
  const pipeline = await pipelineAt('2026-11-14T08:59:00Z')
  const worker = pipeline.worker('worker', concurrency)
  const schedule = await pipeline.create({ ...DAILY, policy: LATER })
  pipeline.target.script = () => FAIL
  pipeline.clock.advance(MINUTE)
  await worker.runDue()
  await pipeline.pass(5 * MINUTE, worker)
  return { pipeline, worker, schedule }
}

describe('while another transaction holds the row of a schedule', () => {
  test('a run that is due is reported after ten minutes, and the finding names the lock', async () => {
    const { pipeline, worker } = await setup()
    await sql`update carillon.runs set due_at = '2026-11-14T09:04:00Z'`.execute(pipeline.db)

    await whileHeld(pipeline, HOLD, async () => {
      await pipeline.pass(9 * MINUTE, worker)
      expect(await audit(pipeline)).toEqual({})
      await pipeline.pass(MINUTE, worker)
      expect(await audit(pipeline)).toEqual({ run_stuck: 1 })
    })

    expect(await detailsOf(pipeline)).toEqual([
      'the run has been due since 2026-11-14T09:04:00.000Z, and no worker took it: ' +
        'another transaction holds the row of its schedule: see which one (pg_locks), and end it',
    ])
  })

  test('a due slot and a lost slot are both reported, and the lost one gets its line once the lock is released', async () => {
    const { pipeline, worker, schedule } = await setup()
    const { db } = pipeline
    await sql`update carillon.runs set due_at = '2026-11-15'`.execute(db)
    const late = await pipeline.create({ cadence: { kind: 'cron', expression: '10 9 * * *', timezone: 'UTC' } })

    await whileHeld(pipeline, HOLD, async () => {
      await pipeline.pass(14 * MINUTE, worker)
      expect(await audit(pipeline)).toEqual({})
      await sql`with gone as (delete from carillon.attempts) delete from carillon.runs`.execute(db)
      await pipeline.pass(2 * MINUTE, worker)
      expect(await audit(pipeline)).toEqual({ slot_lost: 1, schedule_past_due: 1 })
      expect(await pipeline.lines(schedule)).toEqual([])
    })

    const details = await detailsOf(pipeline)
    expect(details.filter((detail) => detail.includes('another transaction holds the row'))).toHaveLength(2)
    await worker.runDue()
    expect(await audit(pipeline)).toMatchObject({ slot_lost: 1 })
    expect(await pipeline.lines(schedule)).toEqual(['09:00 skipped missed'])
    expect(await pipeline.lines(late)).toHaveLength(1)
  })
})

describe('a run that is due and first in its lane', () => {
  async function withHeldRun(concurrency: number) {
    const { pipeline, worker, schedule } = await setup(concurrency)
    await pipeline.create({
      cadence: { kind: 'cron', expression: '6 9 * * *', timezone: 'UTC' },
      target: { kind: 'test', timeoutSeconds: 3600 },
    })
    const { script, answer } = held()
    pipeline.target.script = script
    await pipeline.pass(MINUTE, worker)
    await worker.startDue()
    await pipeline.pass(2 * MINUTE, worker)
    const moveTo = (lane: string): Promise<unknown> =>
      sql`
        update carillon.runs set lane = coalesce(${lane === '' ? null : lane}, lane), due_at = '2026-11-14T09:06:30Z'
        where schedule_id = ${schedule.id}`.execute(pipeline.db)
    const end = async (): Promise<void> => {
      answer(SUCCEEDED)
      await worker.loop.whenIdle()
    }
    return { pipeline, worker, moveTo, end }
  }

  test('is stuck after a minute if a worker has capacity, even if that worker holds another run', async () => {
    const { pipeline, moveTo, end } = await withHeldRun(200)
    await moveTo('')

    expect(await audit(pipeline)).toEqual({ run_stuck: 1 })
    await end()
  })

  test('is not stuck for ten minutes if the only worker is full', async () => {
    const { pipeline, worker, moveTo, end } = await withHeldRun(1)
    await moveTo('')

    expect(await audit(pipeline)).toEqual({})
    await pipeline.pass(9 * MINUTE, worker)
    expect(await audit(pipeline)).toEqual({ run_stuck: 1 })
    await end()
  })

  test('is stuck after a minute if no worker looks at its lane, even if all workers are full', async () => {
    const { pipeline, moveTo, end } = await withHeldRun(1)
    await moveTo('test.64')

    expect(await audit(pipeline)).toEqual({ run_stuck: 1 })
    expect((await detailsOf(pipeline))[0]).toContain('no worker looks at the lane test.64: ')
    await end()
  })
})
