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
  /** The instant at which the manual runs are requested, relative to the start. @default 0 */
  readonly runsAfterMs?: number
}

/** Slots that are due at 09:01 and manual runs that are due earlier or later, all in one lane and none begun. */
async function setup({ slots, runs, room, runsAfterMs = 0 }: Situation) {
  const pipeline = await pipelineAt(START, ANY_NUMBER)
  pipeline.target.script = () => new Promise(() => undefined)
  for (let slot = 0; slot < slots; slot += 1) await pipeline.create()
  const manual = await Promise.all(Array.from({ length: runs }, () => pipeline.create({ cadence: NEVER })))
  pipeline.clock.advance(runsAfterMs)
  for (const { id } of manual) await pipeline.scheduler.runNow(CALLER, id)
  pipeline.clock.advance(Math.max(0, MINUTE - runsAfterMs))
  const worker = pipeline.worker('worker', room)
  await worker.heartbeat.runOnce()
  return worker
}

test('due slots and due runs of one lane each get half of the room', async () => {
  const worker = await setup({ slots: 10, runs: 10, room: 4 })

  expect(await worker.loop.runOnce()).toMatchObject({ begun: 2, taken: 2 })
  expect(worker.loop.inFlight).toBe(4)
})

test('a herd of slots does not starve a waiting run that is due later', async () => {
  const worker = await setup({ slots: 30, runs: 1, room: 4, runsAfterMs: MINUTE + 1000 })

  expect(await worker.loop.runOnce()).toMatchObject({ begun: 2, taken: 1 })
})

test('many waiting runs do not starve a slot that is due later', async () => {
  const worker = await setup({ slots: 1, runs: 30, room: 4 })

  expect(await worker.loop.runOnce()).toMatchObject({ begun: 1, taken: 2 })
})

test.each([
  { what: 'waiting runs get the room that slots do not use of their half', slots: 1, runs: 20 },
  { what: 'slots get the room that waiting runs do not use of their half', slots: 20, runs: 1 },
])('$what in the next round, until the worker is full', async ({ slots, runs }) => {
  const worker = await setup({ slots, runs, room: 10 })

  await worker.startDue()

  expect(worker.loop.inFlight).toBe(10)
})

test('with room for a single run, the slot or run that has been due for longest is next', async () => {
  const pipeline = await pipelineAt(START)
  const { clock, target, scheduler } = pipeline
  const worker = pipeline.worker('small', 1)
  const { script, answers } = heldEach()
  target.script = script
  const manual = await pipeline.create({ cadence: NEVER })
  const at = (time: string): object => ({ cadence: { kind: 'once', at: `2026-03-02T${time}Z` } })
  const schedules = [await pipeline.create(at('09:01:00')), manual, await pipeline.create(at('09:01:02'))]
  clock.advance(MINUTE + 1000)
  await scheduler.runNow(CALLER, manual.id)
  clock.advance(2000)

  for (let call = 0; call < schedules.length; call += 1) {
    await worker.startDue()
    expect(target.calls).toHaveLength(call + 1)
    answers[call]?.(SUCCEEDED)
    await worker.loop.whenIdle()
  }

  expect(target.calls.map(({ scheduleId }) => scheduleId)).toEqual(schedules.map(({ id }) => id))
})

test('many waiting runs do not starve a slot even with room for a single run', async () => {
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
    await worker.startDue()
    await worker.loop.whenIdle()
  }

  expect(target.calls.slice(0, 3).map(({ scheduleId }) => scheduleId)).toContain(slot.id)
})
