import type { EditPlan, Problem, Schedule } from '@carillon/api'
import { afterAll, describe, expect, test } from 'vitest'

import { DIGEST, UNKNOWN_ID } from './example-schedules.ts'
import { clockAt } from './fixed-clock.ts'
import { createTestApp } from './test-app.ts'

const world = await createTestApp({ clock: clockAt('2026-03-02T06:00:00Z') })
const { admin, request } = world
afterAll(() => world[Symbol.asyncDispose]())

async function made(): Promise<string> {
  return `/api/v1/schedules/${(await admin.schedules.create(DIGEST)).id}`
}

describe('an edit', () => {
  test('without If-Match is refused with 428 and a problem that names the header', async () => {
    const answer = await request('PATCH', await made(), { body: { name: 'Other' } })

    expect(answer.statusCode).toBe(428)
    expect(answer.json()).toMatchObject({ code: 'revision_required', errors: [{ field: 'If-Match' }] })
  })

  test('of an outdated revision is refused with 412, and changes nothing', async () => {
    const url = await made()
    await request('PATCH', url, { headers: { 'if-match': '"1"' }, body: { name: 'First' } })

    const answer = await request('PATCH', url, { headers: { 'if-match': '"1"' }, body: { name: 'Second' } })

    expect(answer.statusCode).toBe(412)
    expect(answer.json()).toMatchObject({ code: 'revision_conflict', errors: [{ field: 'If-Match' }] })
    expect((await request('GET', url)).json()).toMatchObject({ name: 'First', revision: 2 })
  })

  test.each(['"1"', '*', '"7", "1"', 'W/"7","1"', '"3" ,\t"1", "2"'])(
    'with If-Match %s is made, and the answer has the new ETag',
    async (ifMatch) => {
      const url = await made()

      const answer = await request('PATCH', url, { headers: { 'if-match': ifMatch }, body: { name: 'Other' } })

      expect(answer.statusCode).toBe(200)
      expect(answer.headers.etag).toBe('"2"')
      expect(answer.json()).toMatchObject({ name: 'Other', revision: 2, updatedBy: 'service:installation' })
    },
  )

  test.each(['1', '"0"', '"a"', '"1",', '*, "1"', '"1" "2"', Array(11).fill('"1"').join(), '""', '"99999999999"'])(
    'with the invalid If-Match %s is refused with a problem that names the header',
    async (ifMatch) => {
      const answer = await request('PATCH', await made(), { headers: { 'if-match': ifMatch }, body: { name: 'Other' } })

      expect(answer.statusCode).toBe(400)
      expect(answer.json<Problem>().errors).toMatchObject([{ field: 'If-Match' }])
    },
  )

  test.each(['W/"1"', 'W/"1", W/"2"', '"2", "3"', 'W/"1", "2"'])(
    'with If-Match %s, which matches no revision, is refused with 412',
    async (ifMatch) => {
      const url = await made()

      const answer = await request('PATCH', url, { headers: { 'if-match': ifMatch }, body: { name: 'Other' } })

      expect(answer.statusCode).toBe(412)
      expect(answer.json()).toMatchObject({ code: 'revision_conflict', errors: [{ field: 'If-Match' }] })
      expect((await request('GET', url)).json()).toMatchObject({ name: DIGEST.name, revision: 1 })
    },
  )

  test('of an unknown schedule is refused with 404, whatever If-Match contains', async () => {
    const url = `/api/v1/schedules/${UNKNOWN_ID}`

    for (const ifMatch of ['"1"', '"1", "2"', 'W/"1"', '*']) {
      const answer = await request('PATCH', url, { headers: { 'if-match': ifMatch }, body: { name: 'Other' } })
      expect(answer.json()).toMatchObject({ status: 404, code: 'schedule_not_found' })
    }
  })

  test.each([{}, { name: DIGEST.name }, DIGEST])('with the unchanged values %j keeps the ETag', async (body) => {
    const url = await made()

    const answer = await request('PATCH', url, { headers: { 'if-match': '"1"' }, body })

    expect([answer.statusCode, answer.headers.etag]).toEqual([200, '"1"'])
    expect(answer.json()).toMatchObject({ revision: 1, updatedBy: null })
    expect((await request('GET', `${url}/history`)).json()).toMatchObject({ items: [{ change: 'created' }] })
  })

  test('of any revision succeeds beside concurrent edits', async () => {
    const { id } = await admin.schedules.create(DIGEST)

    const edited = await Promise.all(['a', 'b', 'c'].map((name) => admin.schedules.edit(id, { name })))

    expect(edited.map(({ revision }) => revision).toSorted((a, b) => a - b)).toEqual([2, 3, 4])
  })

  test('with dryRun lists the slots that appear and disappear, and changes nothing', async () => {
    const url = await made()
    const body = { cadence: { kind: 'cron', expression: '0 10 * * 1-5', timezone: 'Europe/Madrid' } }

    const answer = await request('PATCH', `${url}?dryRun=true`, { headers: { 'if-match': '*' }, body })

    const plan = answer.json<EditPlan>()
    expect(answer.statusCode).toBe(200)
    expect(plan.schedule).toMatchObject({ revision: 2, nextSlotAt: '2026-03-02T09:00:00.000Z' })
    expect(plan.added[0]).toEqual({
      scheduledFor: '2026-03-02T09:00:00.000Z',
      local: '2026-03-02T10:00:00+01:00[Europe/Madrid]',
    })
    expect(plan.removed[0]).toMatchObject({ scheduledFor: '2026-03-02T08:00:00.000Z' })
    expect((await request('GET', url)).json()).toMatchObject({ revision: 1, nextSlotAt: '2026-03-02T08:00:00.000Z' })
    // An edit with the ETag of the plan makes the planned change.
    const edit = await request('PATCH', url, { headers: { 'if-match': answer.headers.etag as string }, body })
    expect(edit.json<Schedule>()).toMatchObject({ revision: 2, nextSlotAt: '2026-03-02T09:00:00.000Z' })
  })

  test('with dryRun is refused where the edit itself would be, and where the value of dryRun is invalid', async () => {
    const url = await made()
    const headers = { 'if-match': '"1"' }

    const refused = await request('PATCH', `${url}?dryRun=true`, { headers, body: { name: '' } })
    const unclear = await request('PATCH', `${url}?dryRun=yes`, { headers, body: { name: 'Other' } })

    expect(refused.json()).toMatchObject({ status: 400, errors: [{ field: 'name' }] })
    expect(unclear.json()).toMatchObject({ status: 400, errors: [{ field: 'query.dryRun' }] })
  })
})

describe('pause and resume', () => {
  test('a pause stops a schedule and a resume continues it, and both keep its ETag', async () => {
    const url = await made()

    const paused = await request('POST', `${url}/pause`, { body: { reason: 'The provider is down' } })
    const resumed = await request('POST', `${url}/resume`)

    expect(paused.headers.etag).toBe('"1"')
    expect(paused.json()).toMatchObject({
      state: 'paused',
      pausedReason: 'The provider is down',
      pausedBy: 'service:installation',
      pausedAt: '2026-03-02T06:00:00.000Z',
      nextSlotAt: null,
    })
    expect(resumed.json()).toMatchObject({ state: 'active', nextSlotAt: '2026-03-02T08:00:00.000Z' })
  })

  test('a resume of an active schedule is refused, and so is a pause with an invalid reason', async () => {
    const url = await made()

    const resumed = await request('POST', `${url}/resume`)
    const paused = await request('POST', `${url}/pause`, { body: { reason: 'auto: me' } })

    expect(resumed.json()).toMatchObject({ status: 409, code: 'state_conflict' })
    expect(paused.json()).toMatchObject({ status: 400, errors: [{ field: 'reason' }] })
  })

  test.each(['pause', 'resume'])('%s honours an If-Match with several ETags', async (what) => {
    const url = await made()
    if (what === 'resume') await request('POST', `${url}/pause`, { body: { reason: 'test' } })
    const body = what === 'pause' ? { body: { reason: 'test' } } : {}
    const change = (ifMatch: string) => request('POST', `${url}/${what}`, { headers: { 'if-match': ifMatch }, ...body })

    expect((await change('"2", "3"')).statusCode).toBe(412)
    expect((await change('"2", "1"')).statusCode).toBe(200)
  })

  test.each(['pause', 'resume'])('%s honours If-Match', async (what) => {
    const url = await made()
    const body = what === 'pause' ? { body: { reason: 'x' } } : {}

    const answer = await request('POST', `${url}/${what}`, { headers: { 'if-match': '"7"' }, ...body })

    expect(answer.json()).toMatchObject({ status: 412, code: 'revision_conflict' })
  })

  test('an unexpected body is ignored, whatever it contains', async () => {
    const url = await made()
    await request('POST', `${url}/pause`, { body: { reason: 'x' } })

    const answer = await request('POST', `${url}/resume`, { headers: { 'content-type': 'text/plain' }, body: '{"a": ' })

    expect(answer.statusCode).toBe(200)
  })
})

describe('skipping a slot', () => {
  test('a slot is skipped and restored', async () => {
    const url = await made()
    const body = { scheduledFor: '2026-03-03T09:00:00+01:00' }

    const skipped = await request('POST', `${url}/skip`, { body })
    const restored = await request('POST', `${url}/restore`, { body })

    expect(skipped.headers.etag).toBe('"1"')
    expect(skipped.json()).toMatchObject({ skippedSlots: ['2026-03-03T08:00:00.000Z'] })
    expect(restored.json()).toMatchObject({ skippedSlots: [] })
  })

  test.each(['skip', 'restore'])('an instant that is not a slot gets 422 from %s', async (what) => {
    const answer = await request('POST', `${await made()}/${what}`, { body: { scheduledFor: '2026-03-03T09:00:01Z' } })

    expect(answer.json()).toMatchObject({ status: 422, code: 'slot_not_found' })
  })

  test.each(['2026-02-30T00:00:00Z', '9999-12-31T23:59:59-01:00', '1969-12-31T23:59:59Z', 0, null])(
    'the slot %j is refused',
    async (scheduledFor) => {
      const answer = await request('POST', `${await made()}/skip`, { body: { scheduledFor } })

      expect(answer.json()).toMatchObject({ status: 400, errors: [{ field: 'scheduledFor' }] })
    },
  )
})

describe('deleting a schedule', () => {
  test('a delete gets 204 without a body, and the schedule is not found afterwards', async () => {
    const url = await made()

    const answer = await request('DELETE', url)

    expect([answer.statusCode, answer.body]).toEqual([204, ''])
    expect((await request('GET', url)).statusCode).toBe(404)
    expect((await request('DELETE', url)).statusCode).toBe(404)
  })

  test('a delete honours If-Match', async () => {
    const url = await made()

    const refused = await request('DELETE', url, { headers: { 'if-match': '"2"' } })

    expect(refused.statusCode).toBe(412)
    expect((await request('DELETE', url, { headers: { 'if-match': '*' } })).statusCode).toBe(204)
  })
})
