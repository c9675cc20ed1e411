import { setImmediate } from 'node:timers/promises'

import pg from 'pg'
import { expect, onTestFinished, test } from 'vitest'

import { emptiedPipelines } from '../emptied-pipeline.ts'
import { holdRun, type HeldRun } from '../held-run.ts'
import { CALLER, EVERY_MINUTE, HEARTBEAT_MS, MINUTE, type Pipeline } from '../pipeline.ts'
import { recordingDb } from '../query-plan.ts'
import { FAIL, SUCCEEDED } from '../scripted-target.ts'
import { listWaits } from '../waits.ts'

const pipelineAt = emptiedPipelines()
const START = '2026-03-02T09:00:30Z'
const NEVER = { kind: 'once', at: '2099-01-01T00:00:00Z' }
const END = 'end of the test'
const CHANNEL = 'carillon_agenda'

interface NotificationReader {
  /** The payloads of the agenda's notifications since the last call, in order. */
  readonly read: () => Promise<string[]>
}

async function listen({ database }: Pipeline): Promise<NotificationReader> {
  const client = new pg.Client({ connectionString: database.url })
  await client.connect()
  onTestFinished(() => client.end())
  let payloads: string[] = []
  client.on('notification', ({ payload = '' }) => payloads.push(payload))
  await client.query(`listen ${CHANNEL}`)
  return {
    read: async () => {
      await database.pool.query('select pg_notify($1, $2)', [CHANNEL, END])
      while (!payloads.includes(END)) await client.query('select 1')
      const before = payloads.slice(0, payloads.indexOf(END))
      payloads = payloads.slice(payloads.indexOf(END) + 1)
      return before
    },
  }
}

async function laneOf({ database }: Pipeline, { id }: { readonly id: string }): Promise<string> {
  const { rows } = await database.pool.query<{ lane: string }>('select lane from carillon.schedules where id = $1', [
    id,
  ])
  return rows[0]?.lane ?? ''
}

test('a manual run notifies its lane; one that waits for its turn does not', async () => {
  const pipeline = await pipelineAt(START)
  const schedule = await pipeline.create({ cadence: NEVER, policy: { overlap: 'queue' } })
  const { read } = await listen(pipeline)

  await pipeline.scheduler.runNow(CALLER, schedule.id)
  expect(await read()).toEqual([await laneOf(pipeline, schedule)])
  await pipeline.scheduler.runNow(CALLER, schedule.id)

  expect(await read()).toEqual([])
})

test.each([
  { what: 'within a second notifies its lane', baseSeconds: 1 },
  { what: 'later sends no notification, because the pipeline loop finds it in time', baseSeconds: 10 },
])('a retry that is due $what', async ({ baseSeconds }) => {
  const pipeline = await pipelineAt(START)
  const retry = { maxAttempts: 3, baseSeconds, capSeconds: baseSeconds }
  const schedule = await pipeline.create({ policy: { retry } })
  pipeline.target.script = () => FAIL
  pipeline.clock.advance(MINUTE / 2)
  const { read } = await listen(pipeline)

  await pipeline.worker().runDue()

  const [{ dueAt } = { dueAt: null }] = await listWaits(pipeline)
  // The jitter may leave the delay at exactly one second.
  const isSoon = (dueAt ?? Number.NaN) - pipeline.clock.instant < 1000
  expect(await read()).toEqual(isSoon ? [await laneOf(pipeline, schedule)] : [])
  expect(isSoon || baseSeconds > 1 || dueAt === pipeline.clock.instant + 1000).toBe(true)
})

test('a success sends no notification', async () => {
  const pipeline = await pipelineAt(START)
  await pipeline.create()
  pipeline.clock.advance(MINUTE / 2)
  const { read } = await listen(pipeline)

  await pipeline.worker().runDue()

  expect(await read()).toEqual([])
})

test.each([
  {
    what: 'the end of the run before it',
    free: ({ answer }: HeldRun): Promise<void> => answer(0, SUCCEEDED),
  },
  {
    what: 'an edit to allow',
    free: async ({ pipeline, schedule }: HeldRun): Promise<void> => {
      await pipeline.scheduler.edit(CALLER, schedule.id, { policy: { overlap: 'allow' } }, { revision: 1 })
    },
  },
  {
    what: 'the cancel of a run that lost its worker',
    free: async ({ pipeline, schedule }: HeldRun): Promise<void> => {
      const other = pipeline.worker('other')
      await pipeline.pass(MINUTE / 2, other)
      await other.rescuer.runOnce()
      const [lost] = await pipeline.ledger(schedule)
      await pipeline.scheduler.cancel(CALLER, lost?.id ?? '')
    },
  },
])('a run that waits for its turn is freed by $what, which notifies its lane', async ({ free }) => {
  const hold = await holdRun(await pipelineAt(START), { overlap: 'queue' })
  const { pipeline, schedule, nextSlot } = hold
  const { read } = await listen(pipeline)
  await nextSlot()
  expect(await read()).toEqual([])

  await free(hold)

  expect((await read()).at(-1)).toBe(await laneOf(pipeline, schedule))
  expect((await pipeline.ledger(schedule)).at(-1)).toMatchObject({ waitsFor: 'worker' })
})

test('a rescue notifies the lane of its run, and any lane if its runs are in several', async () => {
  const pipeline = await pipelineAt(START)
  const { clock, target, scheduler } = pipeline
  const input = { ...EVERY_MINUTE, target: { kind: 'test', timeoutSeconds: 86_400 } }
  const mine = await pipeline.create(input)
  const { read } = await listen(pipeline)
  target.script = () => new Promise(() => undefined)
  clock.advance(MINUTE / 2)
  await pipeline.worker('first').startDue()
  clock.advance(3 * HEARTBEAT_MS)
  await pipeline.worker('rescuer').rescuer.runOnce()
  expect(await read()).toEqual([await laneOf(pipeline, mine)])

  await scheduler.create({ ...CALLER, tenantId: 'neighbour' }, input)
  clock.advance(MINUTE - 3 * HEARTBEAT_MS)
  await pipeline.worker('second').startDue()
  await read()
  clock.advance(3 * HEARTBEAT_MS)
  expect(await pipeline.worker('rescuer').rescuer.runOnce()).toMatchObject({ rescued: 2 })

  expect(await read()).toEqual([''])
})

test('a worker ignores a notification of a lane that it does not serve, and looks after one of a lane that it serves', async () => {
  const pipeline = await pipelineAt(START)
  const { clock, database } = pipeline
  const { db, queries } = recordingDb(database.pool)
  const { loop, heartbeat } = pipeline.worker('worker', 200, { db })
  await heartbeat.runOnce()
  const timers = clock.waiting
  const looks = (): number => queries.filter(({ text }) => text.includes('as always')).length
  const whenItSleeps = async (): Promise<void> => {
    while (clock.waiting <= timers) await setImmediate()
  }
  loop.start()
  await whenItSleeps()
  const before = looks()

  loop.wake('http.1')
  await whenItSleeps()
  await database.pool.query('select 1')
  expect(looks()).toBe(before)
  loop.wake('test.1')
  while (looks() === before) await setImmediate()

  expect(looks()).toBe(before + 1)
  const stopped = loop.stop()
  clock.advance(1000)
  await stopped
})
