import { describe, expect, test } from 'vitest'

import type { Admission } from '../../src/ports/target.ts'
import { emptiedPipelines } from '../emptied-pipeline.ts'
import { CALLER, MINUTE, type Pipeline, type TestWorker } from '../pipeline.ts'
import { FAIL, held } from '../scripted-target.ts'
import { TestAuditor } from '../test-auditor.ts'

const pipelineAt = emptiedPipelines()
const START = '2026-03-02T09:00:30Z'
const COMPLETED = { state: 'completed', nextSlotAt: null, dueAt: null }

async function setup(policy: object, prepare: (pipeline: Pipeline) => void = () => {}) {
  const pipeline = await pipelineAt(START)
  prepare(pipeline)
  const worker = pipeline.worker()
  const schedule = await pipeline.create({ policy })
  pipeline.clock.advance(MINUTE / 2)
  const { scheduler } = pipeline
  const get = () => scheduler.get(CALLER, schedule.id)
  const changes = async () => (await scheduler.history(CALLER, schedule.id)).map(({ change, actor }) => [change, actor])
  return { pipeline, worker, schedule, scheduler, get, changes }
}

async function passMinutes(pipeline: Pipeline, worker: TestWorker, count: number): Promise<void> {
  for (let minute = 0; minute < count; minute += 1) {
    await worker.runDue()
    pipeline.clock.advance(MINUTE)
  }
}

describe('a run limit', () => {
  test('completes the schedule with the slot that begins the last run, and records that', async () => {
    const { pipeline, worker, schedule, get, changes } = await setup({ runLimit: 2 })
    const completed: unknown[] = []
    worker.events.on('schedule.completed', (event) => completed.push(event))

    await passMinutes(pipeline, worker, 1)
    const between = await get()
    await passMinutes(pipeline, worker, 4)

    expect(between).toMatchObject({ state: 'active', runCount: 1 })
    expect(await get()).toMatchObject({ ...COMPLETED, runCount: 2 })
    expect(await pipeline.lines(schedule)).toEqual(['09:01 succeeded', '09:02 succeeded'])
    expect(await changes()).toEqual([
      ['completed', 'system:carillon'],
      ['created', 'user:alice'],
    ])
    expect(completed).toHaveLength(1)
  })

  test('of one is reached by the first slot', async () => {
    const { pipeline, worker, get } = await setup({ runLimit: 1 })

    await worker.runDue()

    expect(await get()).toMatchObject({ ...COMPLETED, runCount: 1 })
    expect(pipeline.target.calls).toHaveLength(1)
  })

  test('counts a run once, however often it is tried', async () => {
    const { pipeline, worker, get, schedule } = await setup({ runLimit: 2, retry: { maxAttempts: 2 } })
    pipeline.target.script = () => FAIL

    await worker.runDue()
    await pipeline.pass(MINUTE / 2, worker)
    await worker.runDue()

    expect(await get()).toMatchObject({ state: 'active', runCount: 1 })
    expect((await pipeline.ledger(schedule)).map(({ attemptCount }) => attemptCount)).toEqual([2])
  })

  test('does not count slots that do not run', async () => {
    const { pipeline, worker, schedule, scheduler, get } = await setup({ runLimit: 2 })
    await scheduler.skip(CALLER, schedule.id, Date.parse('2026-03-02T09:02:00Z'))
    pipeline.target.script = held().script

    await worker.startDue()
    pipeline.clock.advance(MINUTE)
    await worker.startDue()
    await pipeline.pass(MINUTE, worker)
    await worker.startDue()

    expect(await pipeline.lines(schedule)).toEqual(['09:01 running', '09:02 skipped excluded', '09:03 skipped overlap'])
    expect(await get()).toMatchObject({ state: 'active', runCount: 1 })
  })

  test('subtracts a run that the new one replaces before it was ever tried', async () => {
    const { pipeline, worker, schedule, scheduler, get } = await setup({ runLimit: 3, overlap: 'replace' })
    pipeline.target.script = () => new Promise(() => {})

    await worker.startDue()
    await scheduler.runNow(CALLER, schedule.id)
    pipeline.clock.advance(MINUTE)
    await worker.startDue()
    const afterSlot = await get()
    await scheduler.runNow(CALLER, schedule.id)

    const states = (await pipeline.ledger(schedule)).map(({ state, reason }) => reason ?? state)
    expect(states.toSorted()).toEqual(['pending', 'running', 'superseded', 'superseded'])
    expect(afterSlot).toMatchObject({ state: 'active', runCount: 2 })
    expect(await get()).toMatchObject({ state: 'active', runCount: 2 })
  })

  test('is not reached by a slot that the kind of its target refuses', async () => {
    const admissions: Admission[] = [{ kind: 'refused', reason: 'overlap' }, { kind: 'admitted' }]
    const { pipeline, worker, schedule, get } = await setup({ runLimit: 1 }, ({ target }) => {
      target.admit = async () => admissions.splice(0, 1)
    })

    await worker.runDue()
    const afterRefusal = await get()
    pipeline.clock.advance(MINUTE)
    await worker.runDue()

    expect(afterRefusal).toMatchObject({ state: 'active', runCount: 0 })
    expect(await get()).toMatchObject({ ...COMPLETED, runCount: 1 })
    expect(await pipeline.lines(schedule)).toEqual(['09:01 skipped overlap', '09:02 succeeded'])
  })

  test('is reached by a slot that the kind of its target defers', async () => {
    const { worker, get } = await setup({ runLimit: 1 }, ({ target, clock }) => {
      target.admit = async (_tx, runs) =>
        runs.map(() => ({ kind: 'deferred', until: clock.instant + MINUTE, why: 'no room' }))
    })

    await worker.runDue()

    expect(await get()).toMatchObject({ ...COMPLETED, runCount: 1 })
  })
})

describe('a run on demand', () => {
  test('counts, and completes the schedule if it is the last', async () => {
    const { pipeline, worker, schedule, scheduler, get, changes } = await setup({ runLimit: 2, overlap: 'allow' })
    const completed: unknown[] = []
    scheduler.events.on('schedule.completed', (event) => completed.push(event))

    await scheduler.runNow(CALLER, schedule.id)
    expect(await get()).toMatchObject({ state: 'active', runCount: 1 })
    await scheduler.runNow(CALLER, schedule.id)
    await passMinutes(pipeline, worker, 3)

    expect(await get()).toMatchObject({ ...COMPLETED, runCount: 2 })
    expect((await pipeline.lines(schedule)).filter((line) => line.includes('succeeded'))).toHaveLength(2)
    expect((await changes())[0]).toEqual(['completed', 'system:carillon'])
    expect(completed).toHaveLength(1)
  })

  test('that is the last leaves a line for each slot that was due, and the audit misses none', async () => {
    const { pipeline, schedule, scheduler } = await setup({ runLimit: 1 })
    pipeline.clock.advance(2 * MINUTE)

    await scheduler.runNow(CALLER, schedule.id)

    expect((await pipeline.lines(schedule)).filter((line) => line.includes('superseded'))).toEqual([
      '09:01 skipped superseded',
      '09:02 skipped superseded',
      '09:03 skipped superseded',
    ])
    pipeline.clock.advance(10 * MINUTE)
    const { workerDb: db, clock, events } = pipeline
    const { findings } = await new TestAuditor({ db, clock, events }).audit()

    expect(findings).toMatchObject({ slot_lost: 0, slot_unknown: 0, count_wrong: 0, schedule_past_due: 0 })
  })

  test('is refused once the limit is used up', async () => {
    const { worker, schedule, scheduler } = await setup({ runLimit: 1 })
    await worker.runDue()

    await expect(scheduler.runNow(CALLER, schedule.id)).rejects.toMatchObject({
      code: 'state_conflict',
      message:
        'expected a schedule with runs left, got one that has used up its limit of 1 runs: raise policy.runLimit',
    })
  })

  test('completes a paused schedule, which then is not paused any more', async () => {
    const { schedule, scheduler, get } = await setup({ runLimit: 1 })
    await scheduler.pause(CALLER, schedule.id, { reason: 'for now' })

    await scheduler.runNow(CALLER, schedule.id)

    expect(await get()).toMatchObject({ ...COMPLETED, pausedReason: null, pausedAt: null })
  })
})

describe('an edit of the run limit', () => {
  test('that is raised gives a schedule that has used up its runs a next slot again', async () => {
    const { pipeline, worker, schedule, scheduler, get } = await setup({ runLimit: 1 })
    await passMinutes(pipeline, worker, 2)

    const edited = await scheduler.edit(CALLER, schedule.id, { policy: { runLimit: 2 } }, { revision: 1 })
    pipeline.clock.advance(MINUTE)
    await passMinutes(pipeline, worker, 2)

    expect(edited).toMatchObject({ state: 'active', nextSlotAt: Date.parse('2026-03-02T09:04:00Z') })
    expect(await get()).toMatchObject({ ...COMPLETED, runCount: 2 })
  })

  test('with null removes the limit', async () => {
    const { pipeline, worker, schedule, scheduler, get } = await setup({ runLimit: 2 })
    await passMinutes(pipeline, worker, 1)

    const { policy } = await scheduler.edit(CALLER, schedule.id, { policy: { runLimit: null } }, { revision: 1 })
    await passMinutes(pipeline, worker, 3)

    expect(policy).not.toHaveProperty('runLimit')
    expect(await get()).toMatchObject({ state: 'active', runCount: 4 })
  })

  test('to a number that is reached completes the schedule, and closes the slots that were due', async () => {
    const { pipeline, worker, schedule, scheduler } = await setup({})
    await passMinutes(pipeline, worker, 2)

    const edited = await scheduler.edit(CALLER, schedule.id, { policy: { runLimit: 2 } }, { revision: 1 })

    expect(edited).toMatchObject(COMPLETED)
    expect(await pipeline.lines(schedule)).toEqual(['09:01 succeeded', '09:02 succeeded', '09:03 skipped superseded'])
  })

  test('of a paused schedule to a number that is reached lets a resume complete it', async () => {
    const { worker, schedule, scheduler } = await setup({})
    await worker.runDue()
    await scheduler.pause(CALLER, schedule.id, { reason: 'for now' })
    const edited = await scheduler.edit(CALLER, schedule.id, { policy: { runLimit: 1 } }, { revision: 1 })

    const resumed = await scheduler.resume(CALLER, schedule.id)

    expect(edited.state).toBe('paused')
    expect(resumed).toMatchObject(COMPLETED)
  })
})
