import { expect, test } from 'vitest'

import { emptiedPipelines } from '../emptied-pipeline.ts'
import { ANY_NUMBER, CALLER, MINUTE } from '../pipeline.ts'
import { heldEach, SUCCEEDED } from '../scripted-target.ts'

const pipelineAt = emptiedPipelines()
const START = '2026-03-02T09:00:00Z'
const NEVER = { kind: 'once', at: '2099-01-01T00:00:00Z' }

interface Situation {
  readonly slots: number
  readonly runs: number
  readonly room: number
  /** When the runs are asked for. @default 0 */
  readonly runsAfterMs?: number
}

/** Slots that are due at 09:01, and run-nows from an instant before or after; all of one lane, and nobody has begun any. */
async function setup({ slots, runs, room, runsAfterMs = 0 }: Situation) {
  const pipeline = await pipelineAt(START, ANY_NUMBER)
  pipeline.target.script = () => new Promise(() => undefined)
  for (let slot = 0; slot < slots; slot += 1) await pipeline.create()
  const asked = await Promise.all(Array.from({ length: runs }, () => pipeline.create({ cadence: NEVER })))
  pipeline.clock.advance(runsAfterMs)
  for (const { id } of asked) await pipeline.scheduler.runNow(CALLER, id)
  pipeline.clock.advance(Math.max(0, MINUTE - runsAfterMs))
  const worker = pipeline.worker('worker', room)
  await worker.heartbeat.runOnce()
  return worker
}

test('slots and waiting runs that are due in one lane share its room half and half', async () => {
  const worker = await setup({ slots: 10, runs: 10, room: 4 })

  expect(await worker.loop.runOnce()).toMatchObject({ begun: 2, taken: 2 })
  expect(worker.loop.inFlight).toBe(4)
})

test('a herd of slots does not starve a waiting run, though it is due later than all of them', async () => {
  const worker = await setup({ slots: 30, runs: 1, room: 4, runsAfterMs: MINUTE + 1000 })

  expect(await worker.loop.runOnce()).toMatchObject({ begun: 2, taken: 1 })
})

test('a storm of waiting runs does not starve a slot, though it is due later than all of them', async () => {
  const worker = await setup({ slots: 1, runs: 30, room: 4 })

  expect(await worker.loop.runOnce()).toMatchObject({ begun: 1, taken: 2 })
})

test.each([
  { what: 'slots do not use of their half, waiting runs take', slots: 1, runs: 20 },
  { what: 'waiting runs do not use of their half, slots take', slots: 20, runs: 1 },
])('what $what in the next turn, until the worker is full', async ({ slots, runs }) => {
  const worker = await setup({ slots, runs, room: 10 })

  await worker.begin()

  expect(worker.loop.inFlight).toBe(10)
})

test('with room for a single one, whichever has been due for longest is next', async () => {
  const pipeline = await pipelineAt(START)
  const { clock, target, scheduler } = pipeline
  const worker = pipeline.worker('small', 1)
  const { script, answers } = heldEach()
  target.script = script
  const asked = await pipeline.create({ cadence: NEVER })
  const at = (time: string): object => ({ cadence: { kind: 'once', at: `2026-03-02T${time}Z` } })
  const schedules = [await pipeline.create(at('09:01:00')), asked, await pipeline.create(at('09:01:02'))]
  clock.advance(MINUTE + 1000)
  await scheduler.runNow(CALLER, asked.id)
  clock.advance(2000)

  for (let call = 0; call < schedules.length; call += 1) {
    await worker.begin()
    expect(target.calls).toHaveLength(call + 1)
    answers[call]?.(SUCCEEDED)
    await worker.loop.whenIdle()
  }

  expect(target.calls.map(({ scheduleId }) => scheduleId)).toEqual(schedules.map(({ id }) => id))
})

test('a storm of waiting runs leaves a slot its turn, also with room for a single one at a time', async () => {
  const pipeline = await pipelineAt(START, ANY_NUMBER)
  const { clock, target, scheduler } = pipeline
  const slot = await pipeline.create()
  for (let run = 0; run < 5; run += 1) {
    const { id } = await pipeline.create({ cadence: NEVER })
    await scheduler.runNow(CALLER, id)
  }
  clock.advance(MINUTE)
  const worker = pipeline.worker('small', 1)

  for (let call = 0; call < 3; call += 1) {
    await worker.begin()
    await worker.loop.whenIdle()
  }

  expect(target.calls.slice(0, 3).map(({ scheduleId }) => scheduleId)).toContain(slot.id)
})
