import { expect, test } from 'vitest'

import { createDb } from '../../src/db/database.ts'
import { createPool } from '../../src/db/pool.ts'
import { Scheduler } from '../../src/scheduler.ts'
import type { ScheduleInput } from '../../src/schedules/input.ts'
import { countRows, emptiedPipelines } from '../emptied-pipeline.ts'
import { startFaultProxy } from '../fault-proxy.ts'
import { ANY_NUMBER, CALLER, EVERY_MINUTE, type Pipeline } from '../pipeline.ts'
import { recordingDb } from '../query-plan.ts'

const pipelineAt = emptiedPipelines()
const START = '2026-03-02T09:00:30.123Z'

function named(count: number): ScheduleInput[] {
  return Array.from({ length: count }, (_, n) => ({ ...EVERY_MINUTE, name: `schedule ${n}` }))
}

/** The names of all schedules, in order. */
async function namesIn({ database }: Pipeline): Promise<string[]> {
  const { rows } = await database.pool.query<{ name: string }>('select name from carillon.schedule_revisions')
  return rows.map(({ name }) => name).toSorted()
}

test('concurrent creates of one caller share a batch, and each gets its own schedule', async () => {
  const pipeline = await pipelineAt(START)
  const { db, queries } = recordingDb(pipeline.database.pool)
  const emitted: string[] = []
  const { clock, targets, events } = pipeline
  events.on('schedule.created', ({ scheduleId }) => emitted.push(scheduleId))
  const scheduler = new Scheduler({ db, clock, targets, events }, ANY_NUMBER)
  const inputs = named(60)

  const created = await Promise.all(inputs.map((input) => scheduler.create(CALLER, input)))

  expect(created.map(({ name }) => name)).toEqual(inputs.map(({ name }) => name))
  expect(new Set(emitted)).toEqual(new Set(created.map(({ id }) => id)))
  for (const schedule of [created[0], created[59]]) {
    expect(await pipeline.scheduler.get(CALLER, schedule?.id ?? '')).toEqual(schedule)
  }
  const inserts = queries.filter(({ text }) => text.includes('insert into schedules'))
  expect(inserts.length).toBeLessThanOrEqual(3)
})

test('an invalid create fails alone, with the field at fault, and the others of its batch succeed', async () => {
  const pipeline = await pipelineAt(START)
  const inputs = named(20)
  inputs[7] = { ...EVERY_MINUTE, cadence: { ...EVERY_MINUTE.cadence, expression: '61 * * * *' } }

  const ended = await Promise.allSettled(inputs.map((input) => pipeline.scheduler.create(CALLER, input)))

  expect(ended.flatMap(({ status }, index) => (status === 'rejected' ? [index] : []))).toEqual([7])
  expect(ended[7]).toMatchObject({ reason: { code: 'invalid_input', problems: [{ path: 'cadence.expression' }] } })
  expect(await namesIn(pipeline)).toEqual(
    named(20)
      .flatMap(({ name }, n) => (n === 7 ? [] : [name]))
      .toSorted(),
  )
})

test('creates of different callers are never written together (I9)', async () => {
  const pipeline = await pipelineAt(START)
  const callers = ['acme', 'globex'].flatMap((tenantId) =>
    ['user:alice', 'user:bob'].map((subject) => ({ ...CALLER, tenantId, subject })),
  )

  const created = await Promise.all(
    named(40).map((input, n) => pipeline.scheduler.create(callers[n % 4] ?? CALLER, input)),
  )

  for (const [n, { tenantId, createdBy, ownerSubject }] of created.entries()) {
    const subject = callers[n % 4]?.subject
    expect({ tenantId, createdBy, ownerSubject }).toEqual({
      tenantId: callers[n % 4]?.tenantId,
      createdBy: subject,
      ownerSubject: subject,
    })
  }
})

test('when a batch exceeds the quota, as many of its creates succeed as the quota allows', async () => {
  const pipeline = await pipelineAt(START)
  const { db, clock, targets } = pipeline
  const scheduler = new Scheduler({ db, clock, targets }, { maxSchedulesPerProject: 7, maxSchedulesPerUser: null })

  const ended = await Promise.allSettled(named(20).map((input) => scheduler.create(CALLER, input)))

  expect(ended.filter(({ status }) => status === 'fulfilled')).toHaveLength(7)
  const reasons = ended.flatMap((end) => (end.status === 'rejected' ? [(end.reason as { code: string }).code] : []))
  expect(new Set(reasons)).toEqual(new Set(['quota_exceeded']))
  expect(await countRows(pipeline)).toMatchObject({ 'carillon.schedules': 7 })
})

test('creates fail if the connection breaks during their commit, and none is made twice', async () => {
  const pipeline = await pipelineAt(START)
  await using proxy = await startFaultProxy(pipeline.database.url)
  const pool = createPool({ connectionString: proxy.url, isPrepared: true, maxConnections: 1 })
  const { clock, targets } = pipeline
  const scheduler = new Scheduler({ db: createDb(pool), clock, targets }, ANY_NUMBER)
  // Opens the connection, so that the next commit through the proxy is that of the creates below.
  await scheduler.list(CALLER)
  proxy.dropAnswersFrom('commit\0')

  const inputs = named(20)
  const ending = Promise.allSettled(inputs.map((input) => scheduler.create(CALLER, input)))
  while ((await namesIn(pipeline)).length === 0);
  proxy.closeUnanswered()
  const ended = await ending

  const names = await namesIn(pipeline)
  expect(names).toEqual([...new Set(names)])
  expect(ended.filter(({ status }) => status === 'rejected').length).toBeGreaterThan(1)
  await pool.end()
})
