import { expect, test } from 'vitest'

import { Scheduler } from '../../src/scheduler.ts'
import { countRows, emptiedPipelines } from '../emptied-pipeline.ts'
import { CALLER, HOUR, MINUTE } from '../pipeline.ts'

const pipelineAt = emptiedPipelines()
const START = '2026-03-02T09:00:30Z'
const NOON = Date.parse('2026-03-02T12:00:00Z')
const BOB = { ...CALLER, subject: 'user:bob' }
const AT_NOON = { kind: 'cron', expression: '0 12 * * *', timezone: 'UTC' }

async function setup(input: object = {}) {
  const pipeline = await pipelineAt(START)
  const schedule = await pipeline.create(input)
  return { pipeline, worker: pipeline.worker(), schedule, scheduler: pipeline.scheduler }
}

test('an edit appends a revision, with its actor and time', async () => {
  const { pipeline, schedule, scheduler } = await setup()
  pipeline.clock.advance(1000)

  const edited = await scheduler.edit(BOB, schedule.id, { name: 'renamed' }, { revision: 1 })

  expect(edited).toMatchObject({
    name: 'renamed',
    revision: 2,
    createdBy: 'user:alice',
    updatedBy: 'user:bob',
    updatedAt: pipeline.clock.instant,
  })
  expect((await scheduler.history(CALLER, schedule.id)).toReversed()).toMatchObject([
    { change: 'created', revision: 1, actor: 'user:alice', nextSlotAt: schedule.nextSlotAt },
    { change: 'edited', revision: 2, actor: 'user:bob', changedAt: pipeline.clock.instant },
  ])
  expect(await countRows(pipeline)).toMatchObject({ 'carillon.schedule_revisions': 2 })
})

test('of two edits of the same revision one succeeds, and the other fails with a conflict and writes nothing', async () => {
  const { pipeline, schedule, scheduler } = await setup()

  const edits = await Promise.allSettled([
    scheduler.edit(CALLER, schedule.id, { name: 'mine' }, { revision: 1 }),
    scheduler.edit(BOB, schedule.id, { name: 'yours' }, { revision: 1 }),
  ])

  expect(edits.map(({ status }) => status).toSorted()).toEqual(['fulfilled', 'rejected'])
  expect(edits.find(({ status }) => status === 'rejected')).toMatchObject({ reason: { code: 'revision_conflict' } })
  expect(await countRows(pipeline)).toMatchObject({ 'carillon.schedule_revisions': 2, 'carillon.schedule_changes': 2 })
})

test.each(['pause', 'delete'] as const)('a %s that names another revision is rejected', async (change) => {
  const { schedule, scheduler } = await setup()

  const changed = scheduler[change](CALLER, schedule.id, { reason: 'holidays', revision: 7 })

  await expect(changed).rejects.toMatchObject({ code: 'revision_conflict' })
  expect(await scheduler.get(CALLER, schedule.id)).toMatchObject({ state: 'active' })
})

test('a new cadence takes effect at once, and the old next slot does not run', async () => {
  const { pipeline, worker, schedule, scheduler } = await setup()

  const edited = await scheduler.edit(CALLER, schedule.id, { cadence: AT_NOON }, { revision: 1 })
  pipeline.clock.advance(MINUTE)
  await worker.runDue()

  expect(edited).toMatchObject({ nextSlotAt: NOON, dueAt: NOON })
  expect(await pipeline.lines(schedule)).toEqual([])
})

test('each slot that is due when the cadence is edited is skipped as superseded (I6)', async () => {
  const { pipeline, worker, schedule, scheduler } = await setup()
  pipeline.clock.advance(3 * MINUTE)

  await scheduler.edit(CALLER, schedule.id, { cadence: AT_NOON }, { revision: 1 })
  await worker.runDue()

  expect(await pipeline.lines(schedule)).toEqual([
    '09:01 skipped superseded',
    '09:02 skipped superseded',
    '09:03 skipped superseded',
  ])
  expect((await pipeline.ledger(schedule)).map(({ revision }) => revision)).toEqual([1, 1, 1])
  expect(pipeline.target.calls).toEqual([])
})

test.each([
  { what: 'target', edit: { target: { kind: 'test', body: 'new' } } },
  { what: 'name', edit: { name: 'renamed' } },
  { what: 'policy', edit: { policy: { overlap: 'queue' } } },
  {
    what: 'name, with the same cadence,',
    edit: { name: 'renamed', cadence: { timezone: 'UTC', expression: '* * * * *', kind: 'cron' } },
  },
])('an edit of only the $what keeps the next slot, even if it is due', async ({ edit }) => {
  const { pipeline, worker, schedule, scheduler } = await setup()
  pipeline.clock.advance(MINUTE / 2)

  const edited = await scheduler.edit(CALLER, schedule.id, edit, { revision: 1 })
  await worker.runDue()

  expect(edited.nextSlotAt).toBe(schedule.nextSlotAt)
  expect(await pipeline.ledger(schedule)).toMatchObject([{ state: 'succeeded', revision: 2 }])
})

test.each([
  { what: 'nothing', edit: {} },
  { what: 'the same name with spaces around it', edit: { name: ' once a minute ' } },
  { what: 'the same cadence', edit: { cadence: { timezone: 'UTC', expression: '* * * * *', kind: 'cron' } } },
  { what: 'the same target', edit: { target: { kind: 'test', body: { a: 1, b: [2] }, note: 'x' } } },
  {
    what: 'the same target, its fields in another order than the stored one,',
    edit: { target: { kind: 'test', note: 'x', body: { a: 1, b: [2] } } },
  },
  { what: 'a part of the same policy', edit: { policy: { retry: { maxAttempts: 7 }, overlap: 'queue' } } },
  { what: 'no grant, as before', edit: { grantId: null } },
])('an edit with $what makes no revision, no history and no event', async ({ edit }) => {
  const { pipeline, schedule, scheduler } = await setup({
    name: 'once a minute',
    policy: { overlap: 'queue', retry: { maxAttempts: 7 } },
    target: { kind: 'test', body: { a: 1, b: [2] }, note: 'x' },
  })
  const emitted: unknown[] = []
  pipeline.events.on('schedule.edited', (event) => emitted.push(event))
  const before = await countRows(pipeline)
  pipeline.clock.advance(HOUR)

  const edited = await scheduler.edit(BOB, schedule.id, edit, { revision: 1 })

  expect(edited).toEqual(schedule)
  expect(await scheduler.get(CALLER, schedule.id)).toEqual(schedule)
  expect(await countRows(pipeline)).toEqual(before)
  expect(emitted).toEqual([])
})

test('an edit that changes only the order of fields in a payload makes a revision, because the order is sent', async () => {
  const { schedule, scheduler } = await setup({ target: { kind: 'test', body: { a: 1, b: [2] } } })
  const target = { kind: 'test', body: { b: [2], a: 1 } }

  const edited = await scheduler.edit(CALLER, schedule.id, { target }, { revision: 1 })

  expect(edited.revision).toBe(2)
  expect(JSON.stringify(edited.target)).toBe(JSON.stringify(target))
})

test('an edit that changes nothing is still rejected if it names a revision that is not the current one', async () => {
  const { schedule, scheduler } = await setup()

  const edited = scheduler.edit(CALLER, schedule.id, {}, { revision: 7 })

  await expect(edited).rejects.toMatchObject({ code: 'revision_conflict' })
})

test('a field that an edit leaves out does not change', async () => {
  const { schedule, scheduler } = await setup({
    policy: { overlap: 'queue' },
    target: { kind: 'test', body: 'old' },
  })

  const { name, cadence, target, policy, grantId } = await scheduler.edit(
    CALLER,
    schedule.id,
    { cadence: AT_NOON },
    { revision: 1 },
  )

  expect({ name, target, policy, grantId }).toEqual({
    name: schedule.name,
    target: schedule.target,
    policy: schedule.policy,
    grantId: schedule.grantId,
  })
  expect(cadence).toMatchObject(AT_NOON)
})

test('a policy field that an edit leaves out does not change', async () => {
  const { schedule, scheduler } = await setup({ policy: { overlap: 'queue', retry: { maxAttempts: 7 } } })

  const { policy } = await scheduler.edit(
    CALLER,
    schedule.id,
    { policy: { spreadSeconds: 5, retry: { baseSeconds: 20 } } },
    { revision: 1 },
  )

  expect(policy).toEqual({
    ...schedule.policy,
    spreadSeconds: 5,
    retry: { ...schedule.policy.retry, baseSeconds: 20 },
  })
})

test('a completed schedule that gets a new cadence is active again', async () => {
  const { pipeline, worker, schedule, scheduler } = await setup({
    cadence: { kind: 'once', at: '2026-03-02T09:01:00Z' },
  })
  pipeline.clock.advance(MINUTE)
  await worker.runDue()
  expect(await scheduler.get(CALLER, schedule.id)).toMatchObject({ state: 'completed' })

  const edited = await scheduler.edit(CALLER, schedule.id, { cadence: AT_NOON }, { revision: 1 })
  pipeline.clock.advance(NOON - pipeline.clock.instant)
  await worker.runDue()

  expect(edited).toMatchObject({ state: 'active', nextSlotAt: NOON })
  expect(await pipeline.lines(schedule)).toEqual(['09:01 succeeded', '12:00 succeeded'])
})

test('a completed schedule can be renamed, and stays completed', async () => {
  const { pipeline, worker, schedule, scheduler } = await setup({
    cadence: { kind: 'once', at: '2026-03-02T09:01:00Z' },
  })
  pipeline.clock.advance(MINUTE)
  await worker.runDue()

  const edited = await scheduler.edit(CALLER, schedule.id, { name: 'done' }, { revision: 1 })

  expect(edited).toMatchObject({ state: 'completed', name: 'done', nextSlotAt: null })
})

test('a schedule can be renamed if its cadence is more frequent than the current limit', async () => {
  const { pipeline, schedule, scheduler } = await setup()
  const stricter = new Scheduler(pipeline, { minimumSeconds: 3600 })

  const edited = await stricter.edit(CALLER, schedule.id, { name: 'renamed' }, { revision: 1 })

  expect(edited).toMatchObject({ name: 'renamed', nextSlotAt: schedule.nextSlotAt })
  await expect(
    scheduler.edit(CALLER, schedule.id, { cadence: { kind: 'interval', every: 'PT1S' } }, { revision: 2 }),
  ).rejects.toMatchObject({ code: 'invalid_input' })
})

test('an edited schedule stays paused, and uses the new cadence when it is resumed', async () => {
  const { schedule, scheduler } = await setup()
  await scheduler.pause(CALLER, schedule.id, { reason: 'holidays' })

  const edited = await scheduler.edit(CALLER, schedule.id, { cadence: AT_NOON }, { revision: 1 })
  const resumed = await scheduler.resume(CALLER, schedule.id)

  expect(edited).toMatchObject({ state: 'paused', nextSlotAt: null, pausedReason: 'holidays' })
  expect(resumed).toMatchObject({ state: 'active', nextSlotAt: NOON })
})

test.each([
  {
    what: 'a cadence that has ended',
    edit: { cadence: { kind: 'once', at: '2026-03-01T09:00:00Z' } },
    path: 'cadence',
  },
  { what: 'no name', edit: { name: '' }, path: 'name' },
  { what: 'another owner', edit: { ownerSubject: 'user:eve' }, path: 'ownerSubject' },
  { what: 'a field that does not exist', edit: { state: 'paused' }, path: 'state' },
])('an edit to $what is rejected, and nothing is written, not even the line of a due slot', async ({ edit, path }) => {
  const { pipeline, schedule, scheduler } = await setup()
  pipeline.clock.advance(HOUR)
  const before = await countRows(pipeline)

  const edited = scheduler.edit(CALLER, schedule.id, edit, { revision: 1 })

  await expect(edited).rejects.toMatchObject({ code: 'invalid_input', problems: [{ path }] })
  expect(await countRows(pipeline)).toEqual(before)
})

test('the event of an edit is emitted after the commit', async () => {
  const { pipeline, schedule, scheduler } = await setup()
  const emitted: unknown[] = []
  pipeline.events.on('schedule.edited', (event) => emitted.push(event))

  await scheduler.edit(BOB, schedule.id, { name: 'renamed' }, { revision: 1 })

  expect(emitted).toEqual([
    { tenantId: 'acme', projectId: 'web', scheduleId: schedule.id, actor: 'user:bob', revision: 2 },
  ])
})
