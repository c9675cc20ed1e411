import { expect, test } from 'vitest'

import { countRows, emptiedPipelines } from '../emptied-pipeline.ts'
import { insertGrant, revokeGrant } from '../grant-rows.ts'
import { CALLER, MINUTE, type Pipeline } from '../pipeline.ts'

const pipelineAt = emptiedPipelines()
const START = '2026-03-02T09:00:30Z'

test('a slot is skipped if the grant of its schedule has expired or was revoked, and its line has the reason (I8)', async () => {
  const pipeline = await pipelineAt(START)
  const worker = pipeline.worker()
  const grantId = await insertGrant(pipeline, { expiresAt: '2026-03-02T09:02:00Z' })
  const schedule = await pipeline.create({ grantId })

  pipeline.clock.advance(MINUTE / 2)
  await worker.runDue()
  pipeline.clock.advance(MINUTE)
  await worker.runDue()
  await revokeGrant(pipeline, grantId)
  pipeline.clock.advance(MINUTE)
  await worker.runDue()

  expect(await pipeline.lines(schedule)).toEqual([
    '09:01 succeeded',
    '09:02 skipped grant_expired',
    '09:03 skipped grant_revoked',
  ])
})

test('slots that are skipped because of their grant count as failures, so the schedule pauses itself', async () => {
  const pipeline = await pipelineAt(START)
  const worker = pipeline.worker()
  const grantId = await insertGrant(pipeline)
  const schedule = await pipeline.create({ grantId, policy: { autoPauseThreshold: 3 } })
  await revokeGrant(pipeline, grantId)

  for (let slot = 0; slot < 4; slot += 1) {
    pipeline.clock.advance(MINUTE)
    await worker.runDue()
  }

  expect(await pipeline.lines(schedule)).toEqual([
    '09:01 skipped grant_revoked',
    '09:02 skipped grant_revoked',
    '09:03 skipped grant_revoked',
  ])
  expect(await pipeline.scheduler.get(CALLER, schedule.id)).toMatchObject({
    state: 'paused',
    pausedReason: 'auto:consecutive_failures',
  })
})

test.each([
  { what: 'revoked', end: revokeGrant },
  { what: 'expired', end: ({ clock }: Pipeline) => clock.advance(MINUTE / 2) },
])('a manual run is rejected while the grant is $what, and nothing is written (I8)', async ({ what, end }) => {
  const pipeline = await pipelineAt(START)
  const grantId = await insertGrant(pipeline, { expiresAt: '2026-03-02T09:01:00Z' })
  const schedule = await pipeline.create({ grantId })
  await end(pipeline, grantId)
  const before = await countRows(pipeline)

  const run = pipeline.scheduler.runNow(CALLER, schedule.id)

  await expect(run).rejects.toMatchObject({ code: 'grant_invalid', message: expect.stringContaining(what) as string })
  expect(await countRows(pipeline)).toEqual(before)
})

test.each([
  { whose: 'another tenant', of: { tenantId: 'evil' } },
  { whose: 'another project', of: { projectId: 'mobile' } },
])('a create or an edit with a grant of $whose is rejected as if the grant did not exist (I9)', async ({ of }) => {
  const pipeline = await pipelineAt(START)
  const grantId = await insertGrant(pipeline, of)
  const schedule = await pipeline.create()
  const before = await countRows(pipeline)
  const refusal = { code: 'invalid_input', problems: [{ path: 'grantId' }] }

  await expect(pipeline.create({ grantId })).rejects.toMatchObject(refusal)
  await expect(pipeline.scheduler.edit(CALLER, schedule.id, { grantId }, { revision: 1 })).rejects.toMatchObject(
    refusal,
  )

  expect(await countRows(pipeline)).toEqual(before)
})
