import { expect, test } from 'vitest'

import { CALLER, MINUTE, Pipeline } from '../pipeline.ts'

test('a slot that comes due runs once and leaves one line (I2, I3)', async () => {
  await using pipeline = await Pipeline.at('2026-03-02T09:00:30Z')
  const { clock, target, scheduler } = pipeline
  const worker = pipeline.worker()
  const schedule = await pipeline.create()

  await worker.runDue()
  expect(target.calls).toEqual([])
  clock.advance(MINUTE / 2)
  await worker.runDue()
  await worker.runDue()

  expect(await pipeline.lines(schedule)).toEqual(['09:01 succeeded'])
  expect(target.calls).toHaveLength(1)
  expect(await scheduler.get(CALLER, schedule.id)).toMatchObject({
    state: 'active',
    nextSlotAt: Date.parse('2026-03-02T09:02:00Z'),
    runCount: 1,
  })
})
