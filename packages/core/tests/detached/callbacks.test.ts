import { expect, test } from 'vitest'

import { createDb } from '../../src/db/database.ts'
import { callbackToken } from '../../src/ledger/callback-token.ts'
import { Callbacks } from '../../src/ledger/callbacks.ts'
import { readCallbackKey } from '../../src/ledger/completions.ts'
import { emptiedPipelines } from '../emptied-pipeline.ts'
import { CALLER, HOUR, MINUTE } from '../pipeline.ts'

const pipelineAt = emptiedPipelines()
const DONE = { outcome: 'succeeded', result: 7 } as const
const OTHER_RUN = '01980000-0000-7000-8000-0000000000ff'

async function detached() {
  const pipeline = await pipelineAt('2026-03-02T09:00:00Z')
  const { clock, target, targets, database, workerDb } = pipeline
  target.script = () => ({ kind: 'accepted', deadlineMs: HOUR })
  const schedule = await pipeline.create()
  const worker = pipeline.worker()
  clock.advance(MINUTE)
  await worker.runDue()
  const [run] = await pipeline.ledger(schedule)
  const runId = run?.id ?? ''
  const key = await readCallbackKey(workerDb)
  const { tenantId, projectId } = CALLER
  const token = callbackToken(key, { tenantId, projectId, runId })
  const callbacks = new Callbacks({ db: createDb(database.pool), clock, targets })
  return { pipeline, worker, schedule, runId, key, token, callbacks }
}

test('the token of a run completes it without a key, and the ledger says that it was a callback', async () => {
  const { callbacks, runId, token, worker, pipeline } = await detached()

  expect(await callbacks.complete({ runId, attempt: 1, token }, DONE)).toEqual({ kind: 'taken' })
  await worker.runDue()

  expect(await pipeline.scheduler.getRun(CALLER, runId)).toMatchObject({
    state: 'succeeded',
    attempts: [{ completedBy: 'callback', result: 7 }],
  })
})

test('I9: a wrong token, the token of another run, of another project and a run that does not exist are answered alike', async () => {
  const { callbacks, runId, key, token, pipeline } = await detached()
  const { tenantId, projectId } = CALLER
  const [scope = '', mac = ''] = token.split('.')
  const wrong = [
    '',
    'nonsense',
    `${scope}.${Buffer.alloc(32).toString('base64url')}`,
    `${scope}.${mac.slice(0, -4)}`,
    `${Buffer.from('{').toString('base64url')}.${mac}`,
    `${Buffer.from('[1,2]').toString('base64url')}.${mac}`,
    callbackToken(key, { tenantId, projectId, runId: OTHER_RUN }),
    callbackToken(key, { tenantId, projectId: 'mobile', runId }),
    callbackToken(Buffer.alloc(32), { tenantId, projectId, runId }),
  ]

  for (const text of wrong) {
    expect(await callbacks.complete({ runId, attempt: 1, token: text }, DONE)).toEqual({ kind: 'unknown' })
    expect(await callbacks.heartbeat({ runId, token: text })).toEqual({ kind: 'unknown' })
  }
  const ofOther = callbackToken(key, { tenantId, projectId, runId: OTHER_RUN })
  expect(await callbacks.complete({ runId: OTHER_RUN, attempt: 1, token: ofOther }, DONE)).toEqual({ kind: 'unknown' })
  expect(await callbacks.complete({ runId: 'no-uuid', attempt: 1, token }, DONE)).toEqual({ kind: 'unknown' })
  expect(await pipeline.scheduler.getRun(CALLER, runId)).toMatchObject({ state: 'detached' })
})

test('a heartbeat moves the deadline as far as the target says, and is refused once the run is over', async () => {
  const { callbacks, runId, token, worker, pipeline } = await detached()
  pipeline.target.deadlineMs = () => 2 * HOUR
  await pipeline.pass(HOUR / 2, worker)

  expect(await callbacks.heartbeat({ runId, token })).toEqual({ kind: 'extended', deadlineMs: 2 * HOUR })
  expect(await pipeline.scheduler.getRun(CALLER, runId)).toMatchObject({
    deadlineAt: pipeline.clock.instant + 2 * HOUR,
    heartbeatAt: pipeline.clock.instant,
  })
  await callbacks.complete({ runId, attempt: 1, token }, DONE)
  expect(await callbacks.heartbeat({ runId, token })).toEqual({ kind: 'conflict', state: 'detached' })
  await worker.runDue()
  expect(await callbacks.heartbeat({ runId, token })).toEqual({ kind: 'conflict', state: 'succeeded' })
})

test('heartbeats that come often are written seldom, and each is answered as one that moved the deadline', async () => {
  const { callbacks, runId, token, worker, pipeline } = await detached()
  pipeline.target.deadlineMs = () => HOUR
  await pipeline.pass(MINUTE, worker)
  await callbacks.heartbeat({ runId, token })
  const before = await pipeline.scheduler.getRun(CALLER, runId)
  await pipeline.pass(MINUTE, worker)

  expect(await callbacks.heartbeat({ runId, token })).toMatchObject({ kind: 'extended' })
  expect(await pipeline.scheduler.getRun(CALLER, runId)).toEqual(before)
  await pipeline.pass(2 * MINUTE, worker)
  await callbacks.heartbeat({ runId, token })
  expect((await pipeline.scheduler.getRun(CALLER, runId)).heartbeatAt).toBe(pipeline.clock.instant)
})

test('a kind that takes no heartbeats refuses them', async () => {
  const { callbacks, runId, token } = await detached()

  expect(await callbacks.heartbeat({ runId, token })).toEqual({ kind: 'conflict', state: 'detached' })
})
