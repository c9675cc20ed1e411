import { expect, test } from 'vitest'

import { Grants } from '../../src/access/grants.ts'
import { Keys } from '../../src/access/keys.ts'
import { EventLog } from '../../src/event-log/event-log.ts'
import { countRows, emptiedPipelines } from '../emptied-pipeline.ts'
import { CALLER, EVERY_MINUTE } from '../pipeline.ts'

const pipelineAt = emptiedPipelines()

const REFUSED = [
  '_platform',
  '',
  ' ',
  '_',
  '.hidden',
  'a b',
  `a'; reset role; --`,
  'a\0b',
  'ä',
  'x'.repeat(101),
  '%',
  '*',
]

test.each(REFUSED)('every operation rejects a caller whose tenant or project is %j', async (name) => {
  const pipeline = await pipelineAt('2026-03-02T09:00:30Z')
  const { db, clock, scheduler } = pipeline
  const before = await countRows(pipeline)

  for (const scope of [{ tenantId: name }, { projectId: name }]) {
    const caller = { ...CALLER, ...scope }
    const path = 'tenantId' in scope ? 'tenant' : 'project'
    const refusal = { code: 'invalid_input', problems: [{ path }] }
    await expect(scheduler.create(caller, EVERY_MINUTE)).rejects.toMatchObject(refusal)
    await expect(scheduler.list(caller)).rejects.toMatchObject(refusal)
    await expect(new Grants({ db, clock }).list(caller)).rejects.toMatchObject(refusal)
    await expect(new Keys({ db, clock }).list(caller)).rejects.toMatchObject(refusal)
    await expect(new EventLog({ db, clock }).read(caller, '1-1-1-1')).rejects.toMatchObject(refusal)
  }
  expect(await countRows(pipeline)).toEqual(before)
})
