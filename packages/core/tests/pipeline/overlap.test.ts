import { expect, test } from 'vitest'

import type { Outcome } from '../../src/ports/target.ts'
import { emptiedPipelines } from '../emptied-pipeline.ts'
import { holdRun } from '../held-run.ts'
import { CALLER } from '../pipeline.ts'
import { FAIL, FAIL_FOR_GOOD, SUCCEEDED } from '../scripted-target.ts'
import { listWaits } from '../waits.ts'

const pipelineAt = emptiedPipelines()
const START = '2026-03-02T09:00:30Z'
const SLOT_2 = Date.parse('2026-03-02T09:02:00Z')

test.each([
  { overlap: 'forbid', meanwhile: 'skipped overlap', inTheEnd: 'skipped overlap', calls: 1 },
  { overlap: 'queue', meanwhile: 'pending', inTheEnd: 'succeeded', calls: 2 },
  { overlap: 'allow', meanwhile: 'running', inTheEnd: 'succeeded', calls: 2 },
] as const)(
  'under $overlap a slot that comes due during another run is first $meanwhile and finally $inTheEnd (I6)',
  async ({ overlap, meanwhile, inTheEnd, calls }) => {
    const { pipeline, worker, schedule, answer, nextSlot } = await holdRun(await pipelineAt(START), { overlap })

    await nextSlot()
    expect(await pipeline.lines(schedule)).toEqual(['09:01 running', `09:02 ${meanwhile}`])
    await answer(0, SUCCEEDED)
    await worker.startDue()
    if (calls === 2) await answer(1, SUCCEEDED)

    expect(await pipeline.lines(schedule)).toEqual(['09:01 succeeded', `09:02 ${inTheEnd}`])
    expect(pipeline.target.calls).toHaveLength(calls)
    expect(await listWaits(pipeline)).toEqual([])
  },
)

test('under forbid an overlap skips one slot, and the next slot runs', async () => {
  const { pipeline, schedule, answer, nextSlot } = await holdRun(await pipelineAt(START), { overlap: 'forbid' })

  await nextSlot()
  await answer(0, SUCCEEDED)
  await nextSlot()
  await answer(1, SUCCEEDED)

  expect(await pipeline.lines(schedule)).toEqual(['09:01 succeeded', '09:02 skipped overlap', '09:03 succeeded'])
})

test('under queue at most one run waits, and the slots behind it are skipped as overlap (I6)', async () => {
  const { pipeline, worker, schedule, answer, nextSlot } = await holdRun(await pipelineAt(START), { overlap: 'queue' })

  await nextSlot()
  await nextSlot()
  await nextSlot()
  expect(await pipeline.lines(schedule)).toEqual([
    '09:01 running',
    '09:02 pending',
    '09:03 skipped overlap',
    '09:04 skipped overlap',
  ])
  await answer(0, SUCCEEDED)
  await worker.startDue()
  await nextSlot()

  expect(await pipeline.lines(schedule)).toEqual([
    '09:01 succeeded',
    '09:02 running',
    '09:03 skipped overlap',
    '09:04 skipped overlap',
    '09:05 pending',
  ])
})

test('under queue the next slot waits behind a run whose turn has come and which no worker has taken yet', async () => {
  const { pipeline, worker, schedule, answer, nextSlot } = await holdRun(await pipelineAt(START), { overlap: 'queue' })

  await nextSlot()
  await answer(0, SUCCEEDED)
  const now = pipeline.clock.instant
  expect(await listWaits(pipeline)).toEqual([{ scheduleId: schedule.id, slot: SLOT_2, waitsFor: 'worker', dueAt: now }])
  await nextSlot()
  await worker.startDue()

  expect(await pipeline.lines(schedule)).toEqual(['09:01 succeeded', '09:02 running', '09:03 pending'])
  expect(await listWaits(pipeline)).toMatchObject([{ waitsFor: 'turn', dueAt: null }])
})

test.each<{ how: string; outcome: Outcome; state: string }>([
  { how: 'succeeded', outcome: SUCCEEDED, state: 'succeeded' },
  { how: 'failed for good', outcome: FAIL_FOR_GOOD, state: 'failed' },
  {
    how: 'was malformed',
    outcome: { kind: 'malformed', error: { code: 'test', message: 'nonsense' } },
    state: 'failed',
  },
  { how: 'cancelled itself', outcome: { kind: 'cancelled' }, state: 'cancelled' },
])('under queue the waiting run starts after the run before it $how', async ({ outcome, state }) => {
  const { pipeline, worker, schedule, answer, nextSlot } = await holdRun(await pipelineAt(START), { overlap: 'queue' })

  await nextSlot()
  await answer(0, outcome)
  await worker.startDue()

  expect(await pipeline.lines(schedule)).toEqual([`09:01 ${state}`, '09:02 running'])
})

test('under queue the waiting run starts after a caller has cancelled the run before it', async () => {
  const { pipeline, worker, schedule, nextSlot } = await holdRun(await pipelineAt(START), { overlap: 'queue' })
  await nextSlot()
  const [active] = await pipeline.ledger(schedule)

  await pipeline.scheduler.cancel(CALLER, active?.id ?? '')
  const settled = worker.whenSettled()
  await worker.heartbeat.runOnce()
  await settled
  await worker.startDue()

  expect(await pipeline.lines(schedule)).toEqual(['09:01 cancelled', '09:02 running'])
})

test('under queue a run that fails while another waits is not retried, because the next slot has begun', async () => {
  const { pipeline, worker, schedule, answer, nextSlot } = await holdRun(await pipelineAt(START), { overlap: 'queue' })

  await nextSlot()
  await answer(0, FAIL)
  await worker.rescuer.runOnce()
  await worker.startDue()

  expect(await pipeline.lines(schedule)).toEqual(['09:01 failed superseded', '09:02 running'])
  expect(await listWaits(pipeline)).toEqual([])
  expect(await pipeline.scheduler.get(CALLER, schedule.id)).toMatchObject({ failureCount: 1, consecutiveFailures: 1 })
})

test('under queue the waiting run can be cancelled, and then does not run', async () => {
  const { pipeline, worker, schedule, answer, nextSlot } = await holdRun(await pipelineAt(START), { overlap: 'queue' })
  await nextSlot()
  const waiting = (await pipeline.ledger(schedule)).at(-1)

  await pipeline.scheduler.cancel(CALLER, waiting?.id ?? '')
  await answer(0, SUCCEEDED)
  await worker.startDue()

  expect(await pipeline.lines(schedule)).toEqual(['09:01 succeeded', '09:02 cancelled'])
  expect(pipeline.target.calls).toHaveLength(1)
})

test.each([
  { overlap: 'forbid', line: 'skipped overlap' },
  { overlap: 'queue', line: 'pending' },
  { overlap: 'allow', line: 'running' },
  { overlap: 'replace', line: 'pending' },
] as const)(
  'a running manual run counts as overlap: under $overlap the next slot is $line',
  async ({ overlap, line }) => {
    const { pipeline, worker, schedule, answer, nextSlot } = await holdRun(await pipelineAt(START), { overlap })
    await answer(0, SUCCEEDED)
    await pipeline.scheduler.runNow(CALLER, schedule.id)
    await worker.startDue()

    await nextSlot()

    expect((await pipeline.lines(schedule)).at(-1)).toBe(`09:02 ${line}`)
  },
)

test('under forbid a manual run that has not started counts as overlap for the next slot', async () => {
  const { pipeline, worker, schedule, answer, nextSlot } = await holdRun(await pipelineAt(START), { overlap: 'forbid' })
  await answer(0, SUCCEEDED)
  const manual = await pipeline.scheduler.runNow(CALLER, schedule.id)

  await nextSlot()
  await worker.startDue()

  expect((await pipeline.lines(schedule)).at(-1)).toBe('09:02 skipped overlap')
  expect(await pipeline.scheduler.getRun(CALLER, manual.id)).toMatchObject({ state: 'running', trigger: 'manual' })
})
