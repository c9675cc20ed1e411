import { expect, test } from 'vitest'

import { whenBlocked, whileHeld } from '../blocked-statement.ts'
import { emptiedPipelines } from '../emptied-pipeline.ts'
import { CALLER, HEARTBEAT_MS, MINUTE } from '../pipeline.ts'
import { SUCCEEDED } from '../scripted-target.ts'

const pipelineAt = emptiedPipelines()
const LEASE_MS = 3 * HEARTBEAT_MS
/** Blocks writes of the ledger. A writer has read its instant before it waits. */
const HOLD_LEDGER = 'lock table carillon.runs in share mode'

test('a begin that commits after the lease was lost starts no run, and a rescuer finds its runs (I12)', async () => {
  const pipeline = await pipelineAt('2026-03-02T09:00:00Z')
  const { clock, target } = pipeline
  const schedule = await pipeline.create()
  const [worker, other] = [pipeline.worker(), pipeline.worker('other')]
  target.script = () => SUCCEEDED
  clock.advance(MINUTE)
  await worker.heartbeat.runOnce()

  let begun: ReturnType<typeof worker.loop.runOnce> | undefined
  await whileHeld(pipeline, HOLD_LEDGER, async () => {
    begun = worker.loop.runOnce()
    await whenBlocked(pipeline)
    clock.advance(LEASE_MS)
    expect(worker.lease.workerId).toBeUndefined()
  })

  expect(await begun).toMatchObject({ begun: 1 })
  await worker.loop.whenIdle()
  expect(target.calls).toEqual([])
  expect(await pipeline.lines(schedule)).toEqual(['09:01 running'])
  expect(await other.rescuer.runOnce()).toMatchObject({ rescued: 1 })
  await other.runDue()
  expect(target.calls.map(({ attempt }) => attempt)).toEqual([2])
  expect(await pipeline.lines(schedule)).toEqual(['09:01 succeeded'])
})

test('a waiting run that is taken after the lease was lost is not started, even under a new lease (I12)', async () => {
  const pipeline = await pipelineAt('2026-03-02T09:00:00Z')
  const { clock, scheduler, target } = pipeline
  const run = await scheduler.runNow(CALLER, (await pipeline.create()).id)
  const [worker, other] = [pipeline.worker(), pipeline.worker('other')]
  await worker.heartbeat.runOnce()

  let taken: ReturnType<typeof worker.loop.runOnce> | undefined
  await whileHeld(pipeline, HOLD_LEDGER, async () => {
    taken = worker.loop.runOnce()
    await whenBlocked(pipeline)
    clock.advance(LEASE_MS)
    await worker.heartbeat.runOnce()
    expect(worker.lease.workerId).toBeDefined()
  })

  expect(await taken).toMatchObject({ taken: 1 })
  await worker.loop.whenIdle()
  expect(target.calls).toEqual([])
  expect(await other.rescuer.runOnce()).toMatchObject({ rescued: 1 })
  await other.runDue()
  expect(await scheduler.getRun(CALLER, run.id)).toMatchObject({
    state: 'succeeded',
    attempts: [{ outcome: 'lost' }, { outcome: 'succeeded' }],
  })
})
