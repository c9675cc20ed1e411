import { ApiError, createClient, UnreachableError } from '@carillon/api'
import { expect, test } from 'vitest'

import { DIGEST } from './example-schedules.ts'
import { ADMIN_KEY, createTestApp } from './test-app.ts'

test('the typed client creates, reads, edits and deletes a schedule over a real connection', async () => {
  await using world = await createTestApp()
  const client = createClient(await world.listen(), ADMIN_KEY)

  const made = await client.schedules.create(DIGEST, { idempotencyKey: 'once' })
  const again = await client.schedules.create(DIGEST, { idempotencyKey: 'once' })
  const plan = await client.schedules.planEdit(made.id, { cadence: { kind: 'cron', expression: '0 10 * * *' } })
  const edited = await client.schedules.edit(made.id, { name: 'Other', grantId: null }, { revision: made.revision })
  const paused = await client.schedules.pause(made.id, { reason: 'test', revision: 2 })
  const resumed = await client.schedules.resume(made.id)
  const { items: slots } = await client.schedules.slots(made.id, { limit: 2 })
  const skipped = await client.schedules.skip(made.id, slots[0]?.scheduledFor ?? '')
  const restored = await client.schedules.restore(made.id, slots[0]?.scheduledFor ?? '')
  const run = await client.schedules.run(made.id)
  const runs = await client.schedules.runs(made.id)
  const cancelled = await client.runs.cancel(run.id)
  const calendar = await client.schedules.calendar()
  await client.schedules.delete(made.id)

  expect(again).toEqual(made)
  expect(plan.added.length).toBeGreaterThan(0)
  expect(edited).toMatchObject({ name: 'Other', revision: 2 })
  expect([paused.state, resumed.state]).toEqual(['paused', 'active'])
  expect([skipped.skippedSlots, restored.skippedSlots]).toEqual([[slots[0]?.scheduledFor], []])
  expect(runs.items).toEqual([run])
  expect(cancelled.state).toBe('cancelled')
  expect((await client.runs.get(run.id)).attempts).toEqual([])
  expect(calendar).toMatch(/^BEGIN:VCALENDAR/)
  await expect(client.schedules.get(made.id)).rejects.toThrow(ApiError)
})

test('the typed client distinguishes a refused request from an unanswered one', async () => {
  const world = await createTestApp()
  const url = await world.listen()
  const stranger = createClient(url, 'nobody')

  await expect(stranger.schedules.list()).rejects.toMatchObject({ code: 'unauthenticated', status: 401 })
  await world[Symbol.asyncDispose]()

  await expect(stranger.schedules.list()).rejects.toThrow(UnreachableError)
})

test('the typed client follows events until it is aborted', async () => {
  await using world = await createTestApp()
  const abort = new AbortController()
  const client = createClient(await world.listen(), ADMIN_KEY, { signal: abort.signal })
  const events = client.events({ lastEventId: await world.eventLog.tail() })

  const { id } = await client.schedules.create(DIGEST)
  const { value } = await events.next()
  const waiting = events.next()
  abort.abort(new Error('enough'))

  expect(value).toMatchObject({ event: 'schedule', data: { change: 'created', scheduleId: id } })
  await expect(waiting).rejects.toThrow('enough')
})
