import type { OverlapPolicy } from '@carillon/api'
import { expect, test } from 'vitest'

import { emptiedPipelines } from '../emptied-pipeline.ts'
import { holdRun, type HeldRun } from '../held-run.ts'
import { CALLER, MINUTE } from '../pipeline.ts'
import { FAIL, SUCCEEDED } from '../scripted-target.ts'
import { sql } from '../sql.ts'
import { listWaits } from '../waits.ts'

const pipelineAt = emptiedPipelines()
const START = '2026-03-02T09:00:30Z'

async function editOverlap({ pipeline, schedule }: HeldRun, overlap: OverlapPolicy, revision = 1): Promise<void> {
  await pipeline.scheduler.edit(CALLER, schedule.id, { policy: { overlap } }, { revision })
}

/** Whether each run is settled under the lock of its schedule, earliest slot first. */
async function settledLocked({ pipeline }: HeldRun): Promise<boolean[]> {
  const { rows } = await sql<{ settles_locked: boolean }>`
    select settles_locked from carillon.runs order by scheduled_for`.execute(pipeline.db)
  return rows.map((row) => row.settles_locked)
}

test('after an edit from forbid to queue during a run, the next slot waits and starts when the run succeeds (I6)', async () => {
  const held = await holdRun(await pipelineAt(START), { overlap: 'forbid' })
  const { pipeline, worker, schedule, answer, nextSlot } = held
  await editOverlap(held, 'queue')

  await nextSlot()
  expect(await pipeline.lines(schedule)).toEqual(['09:01 running', '09:02 pending'])
  await answer(0, SUCCEEDED)
  await worker.startDue()

  expect(await pipeline.lines(schedule)).toEqual(['09:01 succeeded', '09:02 running'])
})

test('after an edit from allow to queue during two runs, the next slot waits until both have ended', async () => {
  const held = await holdRun(await pipelineAt(START), { overlap: 'allow' })
  const { pipeline, worker, schedule, answer, nextSlot } = held
  await nextSlot()
  await editOverlap(held, 'queue')

  await nextSlot()
  await answer(0, SUCCEEDED)
  await worker.startDue()
  expect(await pipeline.lines(schedule)).toEqual(['09:01 succeeded', '09:02 running', '09:03 pending'])
  await answer(1, SUCCEEDED)
  await worker.startDue()

  expect(await pipeline.lines(schedule)).toEqual(['09:01 succeeded', '09:02 succeeded', '09:03 running'])
})

test('after an edit from forbid to replace during a run, the next slot cancels the run and starts when it has ended', async () => {
  const held = await holdRun(await pipelineAt(START), { overlap: 'forbid' })
  const { pipeline, worker, schedule, nextSlot } = held
  await editOverlap(held, 'replace')

  await nextSlot()
  const settled = worker.whenSettled()
  await worker.heartbeat.runOnce()
  await settled
  await worker.startDue()

  expect(await pipeline.lines(schedule)).toEqual(['09:01 cancelled', '09:02 running'])
})

test('after an edit from queue to allow during a run, the run that waits for its turn starts at once', async () => {
  const held = await holdRun(await pipelineAt(START), { overlap: 'queue' })
  const { pipeline, worker, schedule, nextSlot } = held
  await nextSlot()

  await editOverlap(held, 'allow')
  expect(await listWaits(pipeline)).toMatchObject([{ waitsFor: 'worker', dueAt: pipeline.clock.instant }])
  await worker.startDue()

  expect(await pipeline.lines(schedule)).toEqual(['09:01 running', '09:02 running'])
})

test('after an edit from queue to forbid, a run that waits for its turn still runs, and the slots until then are skipped', async () => {
  const held = await holdRun(await pipelineAt(START), { overlap: 'queue' })
  const { pipeline, worker, schedule, answer, nextSlot } = held
  await nextSlot()
  await editOverlap(held, 'forbid')

  await nextSlot()
  await answer(0, SUCCEEDED)
  await worker.startDue()
  await nextSlot()
  await answer(1, SUCCEEDED)
  await nextSlot()

  expect(await pipeline.lines(schedule)).toEqual([
    '09:01 succeeded',
    '09:02 succeeded',
    '09:03 skipped overlap',
    '09:04 skipped overlap',
    '09:05 running',
  ])
})

test('after an edit from queue to replace, the next slot supersedes the run that waits for its turn', async () => {
  const held = await holdRun(await pipelineAt(START), { overlap: 'queue' })
  const { pipeline, worker, schedule, nextSlot } = held
  await nextSlot()
  await editOverlap(held, 'replace')

  await nextSlot()
  const settled = worker.whenSettled()
  await worker.heartbeat.runOnce()
  await settled
  await worker.startDue()

  expect(await pipeline.lines(schedule)).toEqual(['09:01 cancelled', '09:02 skipped superseded', '09:03 running'])
})

test('a run whose retry waited during an edit from forbid to queue frees the slot behind it when it succeeds', async () => {
  const held = await holdRun(await pipelineAt(START), { overlap: 'forbid' })
  const { pipeline, worker, schedule, answer, nextSlot } = held
  await answer(0, FAIL)
  await editOverlap(held, 'queue')
  await pipeline.pass(MINUTE / 4, worker)
  await worker.startDue()

  await nextSlot()
  expect(await pipeline.lines(schedule)).toEqual(['09:01 running', '09:02 pending'])
  await answer(1, SUCCEEDED)
  await worker.startDue()

  expect(await pipeline.lines(schedule)).toEqual(['09:01 succeeded', '09:02 running'])
})

test('a policy that is edited and edited back leaves no run waiting', async () => {
  const held = await holdRun(await pipelineAt(START), { overlap: 'forbid' })
  const { pipeline, worker, schedule, answer, nextSlot } = held
  await editOverlap(held, 'queue')
  await nextSlot()
  await editOverlap(held, 'forbid', 2)

  await answer(0, SUCCEEDED)
  await worker.startDue()
  await answer(1, SUCCEEDED)
  await nextSlot()

  expect(await pipeline.lines(schedule)).toEqual(['09:01 succeeded', '09:02 succeeded', '09:03 running'])
})

test('only runs that are open at an edit of the overlap policy are settled under the lock of their schedule', async () => {
  const held = await holdRun(await pipelineAt(START), { overlap: 'forbid' })
  const { pipeline, schedule, answer, nextSlot } = held
  await answer(0, SUCCEEDED)
  await nextSlot()

  await pipeline.scheduler.edit(CALLER, schedule.id, { name: 'another name' }, { revision: 1 })
  expect(await settledLocked(held)).toEqual([false, false])
  await editOverlap(held, 'allow', 2)
  await nextSlot()

  expect(await pipeline.lines(schedule)).toEqual(['09:01 succeeded', '09:02 running', '09:03 running'])
  expect(await settledLocked(held)).toEqual([false, true, false])
})

test('a success that is settled under the lock after an edit is emitted and stored like any other', async () => {
  const held = await holdRun(await pipelineAt(START), { overlap: 'forbid' })
  const { pipeline, worker, schedule, answer } = held
  const emitted: unknown[] = []
  worker.events.on('attempt.settled', (event) => emitted.push(event))
  worker.events.on('attempt.fenced', (event) => emitted.push({ fenced: event }))
  await editOverlap(held, 'queue')

  await answer(0, { kind: 'succeeded', result: { done: true } })

  const [run] = await pipeline.ledger(schedule)
  expect(emitted).toMatchObject([{ runId: run?.id, state: 'succeeded', attempt: 1 }])
  expect(await pipeline.scheduler.getRun(CALLER, run?.id ?? '')).toMatchObject({
    state: 'succeeded',
    completedAt: pipeline.clock.instant,
    attempts: [{ attempt: 1, outcome: 'succeeded', result: { done: true }, completedAt: pipeline.clock.instant }],
  })
})
