import { Worker } from '@carillon/core'
import { afterAll, describe, expect, test } from 'vitest'

import { EchoTarget } from './echo-target.ts'
import { DIGEST, UNKNOWN_ID } from './example-schedules.ts'
import { createTestApp } from './test-app.ts'

const target = new EchoTarget()
const world = await createTestApp({ targets: [target] })
const { admin, request } = world
afterAll(() => world[Symbol.asyncDispose]())

const ECHO = { ...DIGEST, target: { kind: 'echo' } }

describe('running a schedule now', () => {
  test('a manual run gets 201 with its location, and has no attempt yet', async () => {
    const { id } = await admin.schedules.create(ECHO)

    const answer = await request('POST', `/api/v1/schedules/${id}/run`)

    const run = answer.json<{ id: string }>()
    expect(answer.statusCode).toBe(201)
    expect(answer.headers.location).toBe(`/api/v1/runs/${run.id}`)
    expect(run).toMatchObject({ scheduleId: id, trigger: 'manual', attemptCount: 0, error: null })
    expect((await request('GET', answer.headers.location as string)).json()).toEqual({ ...run, attempts: [] })
  })

  test('a manual run is refused while another run is open and the policy forbids overlap', async () => {
    const { id } = await admin.schedules.create(ECHO)
    await admin.schedules.run(id)

    await expect(admin.schedules.run(id)).rejects.toMatchObject({ status: 409, code: 'overlap' })
  })

  test('a manual run is refused if the grant was revoked', async () => {
    const { id: grantId } = await admin.grants.create({ scopes: ['echo:call:*'] })
    const { id } = await admin.schedules.create({ ...ECHO, grantId })
    await admin.grants.revoke(grantId)

    await expect(admin.schedules.run(id)).rejects.toMatchObject({ status: 409, code: 'grant_invalid' })
  })
})

test('a run that was attempted shows its attempts, their results and a sentence that explains it', async () => {
  const { id } = await admin.schedules.create(ECHO)
  const run = await admin.schedules.run(id)
  const worker = new Worker({ databaseUrl: world.database.url, targets: [target] })
  const settled = new Promise<void>((resolve) => {
    worker.events.on('attempt.settled', ({ runId }) => void (runId === run.id && resolve()))
  })
  await worker.start()
  await settled
  await worker.stop()

  const done = await admin.runs.get(run.id)

  expect(done).toMatchObject({
    id: run.id,
    state: 'succeeded',
    explanation: 'The run succeeded.',
    attemptCount: 1,
    reason: null,
  })
  expect(done.attempts).toMatchObject([{ attempt: 1, outcome: 'succeeded', result: { echoed: id }, error: null }])
  expect(done.completedAt).toMatch(/^\d{4}-.*\.\d{3}Z$/)
})

describe('cancelling a run', () => {
  test('a waiting run is cancelled once', async () => {
    const { id } = await admin.schedules.create(ECHO)
    const run = await admin.schedules.run(id)

    const cancelled = await admin.runs.cancel(run.id)

    expect(cancelled).toMatchObject({ state: 'cancelled', explanation: 'The run was cancelled.' })
    await expect(admin.runs.cancel(run.id)).rejects.toMatchObject({ status: 409, code: 'state_conflict' })
  })

  test('cancelling an unknown run gets 404', async () => {
    await expect(admin.runs.cancel(UNKNOWN_ID)).rejects.toMatchObject({ status: 404, code: 'run_not_found' })
    await expect(admin.runs.get('nonsense')).rejects.toMatchObject({ status: 404, code: 'run_not_found' })
  })
})
