import { expect, test } from 'vitest'

import type { Json } from '../../src/kernel/json.ts'
import { servicesOf } from '../../src/modules/services.ts'
import type { ModuleService } from '../../src/ports/module.ts'
import { emptiedPipelines } from '../emptied-pipeline.ts'
import { ownLease } from '../own-lease.ts'
import type { Pipeline } from '../pipeline.ts'
import { manifestOf } from './made-up-module.ts'

const pipelineAt = emptiedPipelines()

/** Work that counts its slices in its cursor. */
function counting(seen: Json[], restMs = 1000): ModuleService {
  const slice = (cursor: Json) => {
    seen.push(cursor)
    return Promise.resolve({ cursor: (typeof cursor === 'number' ? cursor : 0) + 1, restMs })
  }
  return { runsIn: 'one', name: 'billing sweep', slice }
}

function serviceOf({ workerDb: db, clock, events }: Pipeline, service: ModuleService) {
  const modules = [{ manifest: manifestOf('billing'), parts: { services: [service] } }]
  const [made] = servicesOf(modules, { db, clock, events, lease: ownLease() })
  if (made === undefined) throw new Error('expected a service, got none')
  return made
}

test('work of a module goes on at its cursor once its rest is over, and by one worker at a time', async () => {
  const pipeline = await pipelineAt('2026-03-02T09:00:00Z')
  const seen: Json[] = []
  const [one, two] = [serviceOf(pipeline, counting(seen)), serviceOf(pipeline, counting(seen))]

  await one.runOnce()
  await one.runOnce()
  await two.runOnce()
  expect(seen).toEqual([null])
  pipeline.clock.advance(1000)
  await two.runOnce()
  await one.runOnce()

  expect(seen).toEqual([null, 1])
  expect([one.name, two.name]).toEqual(['billing sweep', 'billing sweep'])
})

test('another worker takes the work over when its holder stops', async () => {
  const pipeline = await pipelineAt('2026-03-02T09:00:00Z')
  const seen: Json[] = []
  const [one, two] = [serviceOf(pipeline, counting(seen)), serviceOf(pipeline, counting(seen))]
  await one.runOnce()

  await one.stop()
  pipeline.clock.advance(1000)
  await two.runOnce()

  expect(seen).toEqual([null, 1])
})

test('a slice that throws keeps its cursor, and one that says no time to rest has failed', async () => {
  const pipeline = await pipelineAt('2026-03-02T09:00:00Z')
  const seen: Json[] = []
  const failing = serviceOf(pipeline, {
    runsIn: 'one',
    name: 'billing sweep',
    slice: () => Promise.reject(new Error('no ledger')),
  })

  await expect(failing.runOnce()).rejects.toThrow('no ledger')
  await failing.stop()
  await serviceOf(pipeline, counting(seen, Number.NaN))
    .runOnce()
    .catch((error: unknown) =>
      expect(error).toMatchObject({ message: 'expected restMs to be a time of 0 ms or more, got NaN' }),
    )

  expect(seen).toEqual([null])
  expect.assertions(3)
})
