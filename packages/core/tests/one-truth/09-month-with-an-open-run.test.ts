import { expect, test } from 'vitest'

import { Upkeep } from '../../src/maintenance/upkeep.ts'
import { ownLease } from '../own-lease.ts'
import { DAY, Pipeline } from '../pipeline.ts'
import { FAIL, SUCCEEDED } from '../scripted-target.ts'

test('a run that waits for its retry keeps its month, and is retried after an outage that is longer than the retention', async () => {
  await using pipeline = await Pipeline.at('2026-01-14T00:00:00Z')
  const { clock, events, target, workerDb: db } = pipeline
  const retry = { maxAttempts: 100, baseSeconds: 86_400, capSeconds: 86_400 }
  const schedule = await pipeline.create({ cadence: { kind: 'once', at: '2026-01-15T00:00:00Z' }, policy: { retry } })
  const worker = pipeline.worker()
  target.script = () => FAIL
  clock.advance(DAY)
  await worker.runDue()
  expect(await pipeline.lines(schedule)).toEqual(['00:00 retrying'])

  clock.advance(150 * DAY)
  await new Upkeep({ db, clock, events, lease: ownLease() }, { retentionMs: 90 * DAY }).runOnce()
  target.script = () => SUCCEEDED
  await worker.runDue()

  expect(await pipeline.lines(schedule)).toEqual(['00:00 succeeded'])
})
