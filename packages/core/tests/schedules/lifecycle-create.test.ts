import { once } from 'node:events'

import pg from 'pg'
import { expect, test } from 'vitest'

import { createDb } from '../../src/db/database.ts'
import { Scheduler } from '../../src/scheduler.ts'
import { findSchedule } from '../../src/schedules/store/schedules.ts'
import { countRows, emptiedPipelines } from '../emptied-pipeline.ts'
import { CALLER, EVERY_MINUTE, HOUR, MINUTE } from '../pipeline.ts'

const pipelineAt = emptiedPipelines()
const NOW = Date.parse('2026-03-02T09:00:00Z')
const START = '2026-03-02T09:00:00Z'
const NEIGHBOUR = { ...CALLER, projectId: 'mobile' }
const OTHER_TENANT = { ...CALLER, tenantId: 'evil' }

test('the next slot of a new schedule is strictly ahead, even if it is created at the instant of a slot (I1)', async () => {
  const pipeline = await pipelineAt(START)

  const schedule = await pipeline.create()

  expect(schedule).toMatchObject({
    tenantId: 'acme',
    projectId: 'web',
    ownerSubject: 'user:alice',
    state: 'active',
    revision: 1,
    nextSlotAt: NOW + MINUTE,
    dueAt: NOW + MINUTE,
    createdBy: 'user:alice',
    createdAt: NOW,
    updatedBy: null,
    runCount: 0,
    failureCount: 0,
  })
})

test('a create writes only a schedule, its revision, its grant, its history and an entry in the event log', async () => {
  const pipeline = await pipelineAt(START)

  await pipeline.create()

  const written = Object.entries(await countRows(pipeline)).filter(([, rows]) => rows > 0)
  expect(Object.fromEntries(written)).toEqual({
    'carillon.schedule_changes': 1,
    'carillon.schedule_revisions': 1,
    'carillon.schedules': 1,
    'carillon.execution_grants': 1,
    'carillon.feed_entries': 1,
  })
})

test('a schedule is found only in its project, even without row-level security (I9)', async () => {
  const pipeline = await pipelineAt(START)
  const { id } = await pipeline.create()

  expect(await findSchedule(pipeline.db, { ...CALLER, id })).toMatchObject({ id })
  expect(await findSchedule(pipeline.db, { ...NEIGHBOUR, id })).toBeUndefined()
  expect(await findSchedule(pipeline.db, { ...OTHER_TENANT, id })).toBeUndefined()
})

test('a read returns the schedule with every default filled in', async () => {
  const pipeline = await pipelineAt(START)

  const { id } = await pipeline.scheduler.create(
    { ...CALLER, subject: 'service:portal' },
    {
      ...EVERY_MINUTE,
      name: '  Morning digest ',
      ownerSubject: 'user:bob',
      target: { kind: 'test', payload: { z: 1, a: [null, 'é'] } },
      policy: { overlap: 'queue', retry: { maxAttempts: 5 } },
    },
  )

  expect(await pipeline.scheduler.get(CALLER, id)).toMatchObject({
    name: 'Morning digest',
    ownerSubject: 'user:bob',
    createdBy: 'service:portal',
    cadence: { kind: 'cron', expression: '* * * * *', timezone: 'UTC' },
    target: { kind: 'test', payload: { z: 1, a: [null, 'é'] } },
    policy: {
      overlap: 'queue',
      missed: 'skip',
      startingDeadlineSeconds: 300,
      retry: { maxAttempts: 5, baseSeconds: 10, capSeconds: 100 },
      autoPauseThreshold: 10,
      spreadSeconds: 0,
    },
    grantId: expect.any(String) as string,
    excludedSlots: [],
  })
})

test.each([
  { kind: 'once', at: '2026-03-02T10:00:00Z' },
  { kind: 'cron', expression: '0 * * * *', timezone: 'UTC' },
  { kind: 'rrule', rule: 'FREQ=HOURLY', start: '2026-03-02T09:00:00', timezone: 'UTC' },
  { kind: 'interval', every: 'PT1H', startAt: '2026-03-02T09:00:00Z' },
  { kind: 'frequency', frequency: 'weekly', dayOfWeek: 1, timeOfDay: '10:00', timezone: 'UTC' },
])('a cadence of kind $kind comes due and runs', async (cadence) => {
  const pipeline = await pipelineAt(START)
  const schedule = await pipeline.create({ cadence })

  pipeline.clock.advance(HOUR)
  await pipeline.worker().runDue()

  expect(schedule.nextSlotAt).toBe(NOW + HOUR)
  expect(await pipeline.lines(schedule)).toEqual(['10:00 succeeded'])
})

test.each([
  { what: 'a once in the past', cadence: { kind: 'once', at: '2026-03-02T09:00:00Z' } },
  {
    what: 'a cadence that has ended',
    cadence: { kind: 'cron', expression: '* * * * *', timezone: 'UTC', endAt: '2026-03-02T08:59:00Z' },
  },
])('$what is rejected because it would never run', async ({ cadence }) => {
  const pipeline = await pipelineAt(START)

  const created = pipeline.create({ cadence })

  await expect(created).rejects.toMatchObject({ code: 'invalid_input', problems: [{ path: 'cadence' }] })
  expect(await countRows(pipeline)).toMatchObject({ 'carillon.schedules': 0, 'carillon.schedule_revisions': 0 })
})

test('the last slot of a cadence completes its schedule, and the history records it', async () => {
  const pipeline = await pipelineAt(START)
  const worker = pipeline.worker()
  const schedule = await pipeline.create({ cadence: { ...EVERY_MINUTE.cadence, startAt: START, maxRuns: 3 } })
  const emitted: unknown[] = []
  worker.events.on('schedule.completed', (event) => emitted.push(event))

  for (let slot = 0; slot < 4; slot += 1) {
    await worker.runDue()
    pipeline.clock.advance(MINUTE)
  }

  expect(await pipeline.lines(schedule)).toEqual(['09:01 succeeded', '09:02 succeeded'])
  expect(await pipeline.scheduler.get(CALLER, schedule.id)).toMatchObject({ state: 'completed', nextSlotAt: null })
  expect((await pipeline.scheduler.history(CALLER, schedule.id))[0]).toMatchObject({
    change: 'completed',
    actor: 'system:carillon',
    changedAt: NOW + 2 * MINUTE,
  })
  expect(emitted).toMatchObject([{ scheduleId: schedule.id, actor: 'system:carillon' }])
})

test('a list returns schedules page by page, newest first, without duplicates or gaps', async () => {
  const pipeline = await pipelineAt(START)
  const made: string[] = []
  for (let each = 0; each < 7; each += 1) {
    made.unshift((await pipeline.create({ name: `number ${each}` })).id)
    pipeline.clock.advance(1)
  }

  const pages: string[][] = []
  for (let before: string | undefined; pages.at(-1)?.length !== 0; before = pages.at(-1)?.at(-1)) {
    const page = await pipeline.scheduler.list(CALLER, { limit: 3, ...(before === undefined ? {} : { before }) })
    pages.push(page.map(({ id }) => id))
  }

  expect(pages.map(({ length }) => length)).toEqual([3, 3, 1, 0])
  expect(pages.flat()).toEqual(made)
})

test('a list filters by state, kind and a part of the name, with any characters', async () => {
  const pipeline = await pipelineAt(START)
  const { scheduler } = pipeline
  const digest = await pipeline.create({ name: 'Morning Digest 100%' })
  const report = await pipeline.create({ name: 'weekly_report' })
  await scheduler.pause(CALLER, report.id, { reason: 'holidays' })
  const found = async (options: object): Promise<string[]> =>
    (await scheduler.list(CALLER, options)).map(({ id }) => id)

  expect(await found({ state: 'paused' })).toEqual([report.id])
  expect(await found({ state: 'active' })).toEqual([digest.id])
  expect(await found({ nameContains: 'DIGEST' })).toEqual([digest.id])
  expect(await found({ nameContains: '%' })).toEqual([digest.id])
  expect(await found({ nameContains: '_' })).toEqual([report.id])
  expect(await found({ targetKind: 'test' })).toHaveLength(2)
  expect(await found({ targetKind: 'http' })).toEqual([])
  expect(await found({ state: 'completed' })).toEqual([])
})

test.each([
  { whose: 'project', other: NEIGHBOUR },
  { whose: 'tenant', other: OTHER_TENANT },
])('a schedule and its runs do not exist for another $whose (I9)', async ({ other }) => {
  const pipeline = await pipelineAt(START)
  const { scheduler } = pipeline
  const { id } = await pipeline.create()
  const run = await scheduler.runNow(CALLER, id)
  const before = await countRows(pipeline)
  const noSchedule = { code: 'schedule_not_found' }
  const noRun = { code: 'run_not_found' }

  await expect(scheduler.get(other, id)).rejects.toMatchObject(noSchedule)
  await expect(scheduler.edit(other, id, { name: 'mine' }, { revision: 1 })).rejects.toMatchObject(noSchedule)
  await expect(scheduler.pause(other, id, { reason: 'mine' })).rejects.toMatchObject(noSchedule)
  await expect(scheduler.resume(other, id)).rejects.toMatchObject(noSchedule)
  await expect(scheduler.delete(other, id)).rejects.toMatchObject(noSchedule)
  await expect(scheduler.runNow(other, id)).rejects.toMatchObject(noSchedule)
  await expect(scheduler.skip(other, id, NOW + MINUTE)).rejects.toMatchObject(noSchedule)
  await expect(scheduler.restore(other, id, NOW + MINUTE)).rejects.toMatchObject(noSchedule)
  await expect(scheduler.history(other, id)).rejects.toMatchObject(noSchedule)
  await expect(scheduler.listRuns(other, id)).rejects.toMatchObject(noSchedule)
  await expect(scheduler.getRun(other, run.id)).rejects.toMatchObject(noRun)
  await expect(scheduler.cancel(other, run.id)).rejects.toMatchObject(noRun)

  expect(await scheduler.list(other)).toEqual([])
  expect(await scheduler.deleteProject(other)).toEqual({ deleted: 0 })
  expect(await countRows(pipeline)).toEqual(before)
  expect(await scheduler.get(CALLER, id)).toMatchObject({ state: 'active', revision: 1 })
})

test('a page of runs continues where the previous page ended', async () => {
  const pipeline = await pipelineAt(START)
  const worker = pipeline.worker()
  const schedule = await pipeline.create()
  for (let slot = 0; slot < 5; slot += 1) {
    pipeline.clock.advance(MINUTE)
    await worker.runDue()
  }

  const first = await pipeline.scheduler.listRuns(CALLER, schedule.id, { limit: 3 })
  const before = first.at(-1)?.scheduledFor ?? 0
  const second = await pipeline.scheduler.listRuns(CALLER, schedule.id, { limit: 3, before })

  const minutes = [...first, ...second].map(({ scheduledFor }) => (scheduledFor - NOW) / MINUTE)
  expect(minutes).toEqual([5, 4, 3, 2, 1])
})

test('a preview shows the slots of a cadence, and writes nothing', async () => {
  const pipeline = await pipelineAt(START)
  const cadence = { kind: 'cron', expression: '30 2 * * *', timezone: 'Europe/Madrid' }

  const preview = await pipeline.scheduler.preview({ cadence, from: Date.parse('2026-03-28T12:00:00Z'), count: 2 })

  expect(preview.description).toContain('Europe/Madrid')
  expect(preview.slots).toEqual([
    { scheduledFor: Date.parse('2026-03-29T01:00:00Z'), local: '2026-03-29T03:00:00+02:00[Europe/Madrid]' },
    { scheduledFor: Date.parse('2026-03-30T00:30:00Z'), local: '2026-03-30T02:30:00+02:00[Europe/Madrid]' },
  ])
  expect(preview.warnings.length).toBeGreaterThan(0)
  expect(await countRows(pipeline)).toMatchObject({ 'carillon.schedules': 0, 'carillon.runs': 0 })
})

test('creates work with a pool that was not made by createPool', async () => {
  const { database, clock, targets } = await pipelineAt('2026-03-02T09:00:00Z')
  const pool = new pg.Pool({ connectionString: database.url })
  const removed = once(pool, 'remove')
  const db = createDb(pool)

  const made = await new Scheduler({ db, clock, targets }).create(CALLER, EVERY_MINUTE)

  expect(made.nextSlotAt).toBe(Date.parse('2026-03-02T09:01:00Z'))
  await db.close()
  // The connection closes after the pool says that it has ended.
  await removed
})

test('creates work although the application has changed how the driver reads instants', async () => {
  const { TIMESTAMPTZ } = pg.types.builtins
  const parse = pg.types.getTypeParser(TIMESTAMPTZ) as (text: string) => Date
  const pipeline = await pipelineAt('2026-03-02T09:00:30Z')
  pg.types.setTypeParser(TIMESTAMPTZ, (text: string) => text)

  const made = await pipeline.create().finally(() => pg.types.setTypeParser(TIMESTAMPTZ, parse))

  expect(made.nextSlotAt).toBe(Date.parse('2026-03-02T09:01:00Z'))
})
