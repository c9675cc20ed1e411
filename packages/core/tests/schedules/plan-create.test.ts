import { expect, test } from 'vitest'

import { CarillonError } from '../../src/kernel/errors.ts'
import { countRows, emptiedPipelines } from '../emptied-pipeline.ts'
import { CALLER } from '../pipeline.ts'

const START = '2026-03-02T06:00:00Z'
const VALID = {
  name: 'Digest',
  cadence: { kind: 'cron', expression: '0 9 * * 1-5', timezone: 'Europe/Madrid' },
  target: { kind: 'test' },
}
const pipelineAt = emptiedPipelines()

const REFUSED: readonly [string, object][] = [
  ['no name', { ...VALID, name: '' }],
  ['a cadence that cannot be read', { ...VALID, cadence: { kind: 'cron', expression: '61 * * * *' } }],
  ['a cadence that has ended', { ...VALID, cadence: { kind: 'once', at: '2020-01-01T00:00:00Z' } }],
  ['an unknown kind of target', { ...VALID, target: { kind: 'nothing' } }],
  ['an invalid policy', { ...VALID, policy: { overlap: 'nope', spreadSeconds: -1 } }],
  ['an unknown field', { ...VALID, nonsense: 1 }],
  ['a grant that does not exist', { ...VALID, grantId: '01890000-0000-7000-8000-000000000000' }],
]

test.each(REFUSED)('a plan rejects what a create rejects, with the same message: %s', async (_what, input) => {
  const { scheduler, db } = await pipelineAt(START)
  const refusalOf = (asked: Promise<unknown>): Promise<unknown> =>
    asked.then(
      () => 'accepted',
      (error: unknown) => error,
    )

  const planned = await refusalOf(scheduler.planCreate(CALLER, input as typeof VALID))
  const created = await refusalOf(scheduler.create(CALLER, input as typeof VALID))

  expect(planned).toBeInstanceOf(CarillonError)
  expect(planned).toEqual(created)
  expect(Object.values(await countRows({ db })).filter((count) => count > 0)).toEqual([])
})

test('a plan shows every default and the next slots, and creates nothing', async () => {
  const { scheduler, db } = await pipelineAt(START)

  const plan = await scheduler.planCreate(CALLER, VALID)

  expect(Object.values(await countRows({ db })).filter((count) => count > 0)).toEqual([])
  const made = await scheduler.create(CALLER, VALID)
  expect(plan).toMatchObject({
    name: made.name,
    cadence: made.cadence,
    target: made.target,
    policy: made.policy,
    grantId: null,
    ownerSubject: CALLER.subject,
    description: 'At 09:00 on Monday through Friday, in Europe/Madrid',
  })
  expect(plan.slots).toHaveLength(5)
  expect(plan.slots[0]?.scheduledFor).toBe(made.nextSlotAt)
})
