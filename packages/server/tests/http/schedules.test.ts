import type { Problem, Schedule } from '@carillon/api'
import { afterAll, describe, expect, test } from 'vitest'

import { DIGEST, UNKNOWN_ID } from './example-schedules.ts'
import { clockAt } from './fixed-clock.ts'
import { createTestApp } from './test-app.ts'

// The test begins on a Monday.
const world = await createTestApp({ clock: clockAt('2026-03-02T06:00:00Z') })
const { admin, request } = world
afterAll(() => world[Symbol.asyncDispose]())

describe('creating a schedule', () => {
  test('a create gets 201 with the location, the revision as ETag, and the whole schedule', async () => {
    const answer = await request('POST', '/api/v1/schedules', { body: DIGEST })

    const schedule = answer.json<Schedule>()
    expect(answer.statusCode).toBe(201)
    expect(answer.headers).toMatchObject({
      location: `/api/v1/schedules/${schedule.id}`,
      etag: '"1"',
      'cache-control': 'no-store',
    })
    expect(schedule).toMatchObject({
      tenant: 'default',
      project: 'default',
      ownerSubject: 'service:installation',
      state: 'active',
      revision: 1,
      description: expect.stringContaining('09:00') as unknown,
      nextSlotAt: '2026-03-02T08:00:00.000Z',
      dueAt: '2026-03-02T08:00:00.000Z',
      createdAt: '2026-03-02T06:00:00.000Z',
      skippedSlots: [],
      pausedAt: null,
    })
    expect((await request('GET', answer.headers.location as string)).json()).toEqual(schedule)
  })

  test('a payload is stored unchanged', async () => {
    const payload = { constructor: 'x', toString: null, nested: [{ hasOwnProperty: 1 }], 'a.b': 0.1 }

    const { id } = await admin.schedules.create({ ...DIGEST, target: { ...DIGEST.target, payload } })

    expect((await admin.schedules.get(id)).target).toMatchObject({ payload })
  })

  test('a create that core refuses names every field at fault with its reason', async () => {
    const body = { name: '', cadence: { kind: 'cron', expression: 'at noon' }, target: { kind: 'http', url: 'x' } }

    const answer = await request('POST', '/api/v1/schedules', { body })

    const problem = answer.json<Problem>()
    expect(answer.statusCode).toBe(400)
    expect(answer.headers['content-type']).toMatch(/^application\/problem\+json/)
    expect(problem).toMatchObject({ type: 'urn:carillon:problem:invalid_input', code: 'invalid_input', status: 400 })
    expect(problem.instance).toBe(`/requests/${String(answer.headers['x-request-id'])}`)
    expect(problem.errors.map(({ field }) => field)).toEqual(['name', 'cadence.expression', 'target.url'])
    expect(problem.detail).toMatch(/^name: expected .*and 2 more/)
  })
})

describe('creating several schedules', () => {
  const MANY = '/api/v1/schedules/batch'

  test('a batch gets 201 with the ids in order, and the same answer again for the same Idempotency-Key', async () => {
    const body = { schedules: [DIGEST, { ...DIGEST, name: 'Evening digest' }] }
    const headers = { 'idempotency-key': 'moving house' }

    const answer = await request('POST', MANY, { body, headers })
    const again = await request('POST', MANY, { body, headers })

    const { ids } = answer.json<{ ids: string[] }>()
    const made = await Promise.all(ids.map((id) => admin.schedules.get(id)))
    expect(answer.statusCode).toBe(201)
    expect(made.map(({ name }) => name)).toEqual([DIGEST.name, 'Evening digest'])
    expect(again.json()).toEqual({ ids })
    expect([answer, again].map((one) => one.headers['idempotency-replayed'])).toEqual([undefined, 'true'])
  })

  test('a batch, or its preview, is refused as a whole if one schedule is invalid, and the problem names it', async () => {
    const schedules = [DIGEST, { ...DIGEST, cadence: { kind: 'cron', expression: 'at noon' } }, 'x']
    const before = await admin.schedules.list()

    const answer = await request('POST', MANY, { body: { schedules } })
    const preview = await request('POST', `${MANY}/preview`, { body: { schedules } })

    expect([answer.statusCode, preview.statusCode]).toEqual([400, 400])
    const fields = answer.json<Problem>().errors.map(({ field }) => field)
    expect(fields).toEqual(['schedules[1].cadence.expression', 'schedules[2]'])
    expect(preview.json<Problem>().errors).toEqual(answer.json<Problem>().errors)
    expect(await admin.schedules.list()).toEqual(before)
  })

  test.each([[[]], [Array(1001).fill(DIGEST)], ['x'], [undefined]])(
    'a list that is empty, too long or no list is refused before its schedules are read',
    async (schedules) => {
      const answer = await request('POST', MANY, { body: { schedules } })

      expect(answer.statusCode).toBe(400)
      expect(answer.json<Problem>().errors).toMatchObject([{ field: 'schedules' }])
    },
  )

  test('a batch can be previewed', async () => {
    const { items } = await admin.schedules.previewMany([DIGEST, { ...DIGEST, name: 'Evening digest' }])

    expect(items).toEqual([
      await admin.schedules.preview(DIGEST),
      await admin.schedules.preview({ ...DIGEST, name: 'Evening digest' }),
    ])
  })
})

describe('reading schedules', () => {
  test('an unknown or malformed id gets 404 with a problem that quotes it', async () => {
    for (const id of [UNKNOWN_ID, 'x', '%00', 'a'.repeat(5000), '%F0%9F%94%94']) {
      const answer = await request('GET', `/api/v1/schedules/${id}`)

      expect(answer.statusCode).toBe(404)
      expect(answer.json()).toMatchObject({ code: 'schedule_not_found' })
    }
  })

  test('I9: a caller does not see the schedules of another project', async () => {
    const { id } = await admin.schedules.create(DIGEST)
    const { key } = await admin.keys.create({ tenant: 'acme', project: 'web', subject: 'user:bob', role: 'admin' })
    const other = world.client(key)

    await expect(other.schedules.get(id)).rejects.toMatchObject({ code: 'schedule_not_found' })
    await expect(other.schedules.delete(id)).rejects.toMatchObject({ code: 'schedule_not_found' })
    expect(await other.schedules.list()).toEqual({ items: [], nextCursor: null })
  })

  test('a list can be filtered by state, kind of target and part of the name', async () => {
    const { id } = await admin.schedules.create({ ...DIGEST, name: 'Needle 100%' })
    await admin.schedules.pause(id, { reason: 'for the test' })

    const found = await admin.schedules.list({ q: 'needle 100%', state: 'paused', targetKind: 'http' })
    const none = await admin.schedules.list({ q: 'needle', state: 'active' })

    expect(found.items.map((schedule) => schedule.id)).toEqual([id])
    expect(none.items).toEqual([])
  })

  test.each([
    ['/api/v1/schedules?state=deleted', 'query.state'],
    ['/api/v1/schedules?limit=0', 'query.limit'],
    ['/api/v1/schedules?limit=201', 'query.limit'],
    ['/api/v1/schedules?limit=1e3', 'query.limit'],
    ['/api/v1/schedules?limit=99999999999999999999', 'query.limit'],
    ['/api/v1/schedules?q=%00', 'query.q'],
    ['/api/v1/schedules?targetKind=%00', 'query.targetKind'],
    ['/api/v1/schedules?Limit=3', 'query.Limit'],
    ['/api/v1/schedules?limit=3&limit=3', 'query.limit'],
    ['/api/v1/schedules?__proto__=1', 'query.__proto__'],
    [`/api/v1/schedules/${UNKNOWN_ID}?pretty=1`, 'query.pretty'],
    [`/api/v1/schedules/${UNKNOWN_ID}/slots?from=yesterday`, 'query.from'],
    [`/api/v1/schedules/${UNKNOWN_ID}/slots?to=0001-01-01T00:00:00Z`, 'query.to'],
  ])('GET %s is refused with a problem that names %s', async (url, field) => {
    const answer = await request('GET', url)

    expect(answer.statusCode).toBe(400)
    expect(answer.json<Problem>().errors).toEqual([
      { field, message: expect.stringMatching(/^expected .*got /) as unknown },
    ])
  })
})

test('slots are listed within a span, with local times, and include the skipped ones', async () => {
  const { id } = await admin.schedules.create(DIGEST)
  await admin.schedules.skip(id, '2026-03-04T08:00:00Z')

  const { items } = await admin.schedules.slots(id, { from: '2026-03-03T00:00:00+01:00', to: '2026-03-05T00:00:00Z' })
  const ahead = await admin.schedules.slots(id, { limit: 1 })
  const none = await admin.schedules.slots(id, { from: '2026-03-05T00:00:00Z', to: '2026-03-03T00:00:00Z' })

  expect(items).toEqual([
    { scheduledFor: '2026-03-03T08:00:00.000Z', local: '2026-03-03T09:00:00+01:00[Europe/Madrid]', isSkipped: false },
    { scheduledFor: '2026-03-04T08:00:00.000Z', local: '2026-03-04T09:00:00+01:00[Europe/Madrid]', isSkipped: true },
  ])
  expect(ahead.items.map(({ scheduledFor }) => scheduledFor)).toEqual(['2026-03-02T08:00:00.000Z'])
  expect(none.items).toEqual([])
})

test('the history lists the actor of every change, the latest change first', async () => {
  const { id } = await admin.schedules.create(DIGEST)
  await admin.schedules.edit(id, { name: 'Evening digest' }, { revision: 1 })
  await admin.schedules.pause(id, { reason: 'holidays' })
  const run = await admin.schedules.run(id)
  await admin.runs.cancel(run.id)

  const { items } = await admin.schedules.history(id)

  expect(items.map(({ change, revision, scheduledFor, reason }) => [change, revision, scheduledFor, reason])).toEqual([
    ['run_cancelled', 2, run.scheduledFor, null],
    ['run_requested', 2, run.scheduledFor, null],
    ['paused', 2, null, 'holidays'],
    ['edited', 2, null, null],
    ['created', 1, null, null],
  ])
  expect(items.at(-1)).toMatchObject({ actor: 'service:installation', changedAt: '2026-03-02T06:00:00.000Z' })
})

test('a deleted schedule is not found, nor are its history and its list of runs, but each run is still found by its id', async () => {
  const { id } = await admin.schedules.create(DIGEST)
  const run = await admin.schedules.run(id)
  await admin.schedules.delete(id)

  const notFound = { status: 404, code: 'schedule_not_found' }
  await expect(admin.schedules.get(id)).rejects.toMatchObject(notFound)
  await expect(admin.schedules.history(id)).rejects.toMatchObject(notFound)
  await expect(admin.schedules.runs(id)).rejects.toMatchObject(notFound)
  expect(await admin.runs.get(run.id)).toMatchObject({ scheduleId: id, state: 'cancelled' })
})
