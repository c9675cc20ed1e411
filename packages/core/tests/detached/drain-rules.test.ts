import { expect, test } from 'vitest'

import { emptiedPipelines } from '../emptied-pipeline.ts'
import { MINUTE } from '../pipeline.ts'
import { held, SUCCEEDED } from '../scripted-target.ts'

const pipelineAt = emptiedPipelines()
const GRACE_MS = 20_000

async function draining(drain: { kind: 'wait' } | { kind: 'hand_back'; graceMs: number } | undefined) {
  const pipeline = await pipelineAt('2026-03-02T09:00:00Z')
  const { clock, target } = pipeline
  if (drain !== undefined) target.drain = drain
  const { script, answer } = held()
  target.script = script
  const schedule = await pipeline.create({ target: { kind: 'test', timeoutSeconds: 3600 } })
  const worker = pipeline.worker()
  clock.advance(MINUTE)
  await worker.startDue()
  const drained = worker.loop.drain(GRACE_MS)
  return { pipeline, worker, clock, schedule, answer, drained }
}

test('a kind that asks for less time than the worker gives is handed back sooner', async () => {
  const { pipeline, clock, schedule, drained } = await draining({ kind: 'hand_back', graceMs: 1000 })
  clock.advance(1000)
  await drained

  expect(await pipeline.ledger(schedule)).toMatchObject([{ state: 'pending', waitsFor: 'worker', attemptCount: 0 }])
})

test('a kind that must not be repeated is not handed back: its attempt ends by itself', async () => {
  const { pipeline, worker, schedule, answer, drained } = await draining({ kind: 'wait' })
  await pipeline.pass(GRACE_MS + 1000, worker)
  answer(SUCCEEDED)
  await drained

  expect(await pipeline.lines(schedule)).toEqual(['09:01 succeeded'])
})
