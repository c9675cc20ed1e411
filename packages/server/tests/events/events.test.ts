import { operations, type Problem } from '@carillon/api'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'

import { DIGEST } from '../http/example-schedules.ts'
import { ADMIN_KEY, createTestApp } from '../http/test-app.ts'
import { EventReader, summaryOf } from './event-reader.ts'

const world = await createTestApp()
const { admin } = world
let url: string

beforeAll(async () => {
  url = await world.listen()
})
afterAll(() => world[Symbol.asyncDispose]())

const AUTHORIZED = { authorization: `Bearer ${ADMIN_KEY}` }
const CALLER = { tenantId: 'default', projectId: 'default', subject: 'service:installation' }

function follow(options: { readonly key?: string; readonly lastEventId?: string }): EventReader {
  return new EventReader(url, options)
}

describe('following events', () => {
  test('an event stream begins at once, and its headers forbid caching and buffering', async () => {
    const abort = new AbortController()
    const response = await fetch(`${url}/api/v1/events`, { headers: AUTHORIZED, signal: abort.signal })

    expect(response.status).toBe(200)
    expect(Object.fromEntries(response.headers)).toMatchObject({
      'content-type': 'text/event-stream',
      'cache-control': 'no-store',
      'x-accel-buffering': 'no',
    })
    const chunk = await response.body?.getReader().read()
    expect(new TextDecoder().decode(chunk?.value as Uint8Array)).toMatch(/^retry: 2000\nid: \S+\n\n$/)
    abort.abort()
  })

  test('an event stream sends the changes of schedules and runs in order, with their current state', async () => {
    const tail = await world.eventLog.tail()
    await using reader = follow({ lastEventId: tail })

    const schedule = await admin.schedules.create(DIGEST)
    const run = await admin.schedules.run(schedule.id)
    await admin.runs.cancel(run.id)
    await admin.schedules.delete(schedule.id)
    const events = await reader.take(6)

    expect(events.map(summaryOf)).toEqual([
      `schedule created ${schedule.id}`,
      `run pending ${run.id}`,
      `schedule run_requested ${schedule.id}`,
      `run cancelled ${run.id}`,
      `schedule run_cancelled ${schedule.id}`,
      `schedule deleted ${schedule.id}`,
    ])
    expect(events[3]?.data).toEqual({
      change: 'cancelled',
      run: expect.objectContaining({ explanation: 'The run was cancelled.' }) as unknown,
    })
    expect(events[5]?.data).toMatchObject({ schedule: null })
    expect(new Set(events.map(({ id }) => id)).size).toBe(6)
    for (const { data } of events) expect(operations.followEvents.success.schema.parse(data)).toEqual(data)
  })

  test('I9: an event stream sends nothing of another project', async () => {
    const { key } = await admin.keys.create({ project: 'web', subject: 'user:a', role: 'member' })
    const adminOfWeb = await admin.keys.create({ project: 'web', subject: 'user:b', role: 'admin' })
    await using reader = follow({ key, lastEventId: await world.eventLog.tail() })

    await admin.schedules.create(DIGEST)
    const own = await world.client(adminOfWeb.key).schedules.create(DIGEST)

    expect(summaryOf(await reader.next())).toBe(`schedule created ${own.id}`)
  })
})

describe('reconnecting to events', () => {
  test('a client that reconnects with the id of an event gets the events after it', async () => {
    const tail = await world.eventLog.tail()
    const first = await admin.schedules.create(DIGEST)
    const second = await admin.schedules.create(DIGEST)
    const known = await takeAfter(tail, 1)
    const [{ id } = { id: '' }] = known

    await using reader = follow({ lastEventId: id })
    const missed = await reader.next()
    const third = await admin.schedules.create(DIGEST)

    expect(known.map(summaryOf)).toEqual([`schedule created ${first.id}`])
    expect(summaryOf(missed)).toBe(`schedule created ${second.id}`)
    expect(summaryOf(await reader.next())).toBe(`schedule created ${third.id}`)
  })

  test('a client that cannot set headers passes the id as a parameter', async () => {
    const tail = await world.eventLog.tail()
    const { id } = await admin.schedules.create(DIGEST)
    const abort = new AbortController()

    const response = await fetch(`${url}/api/v1/events?after=${tail}`, {
      headers: AUTHORIZED,
      signal: abort.signal,
    })

    let text = ''
    for await (const chunk of response.body ?? []) {
      text += new TextDecoder().decode(chunk as Uint8Array)
      if (text.includes(id)) break
    }
    expect(text).toContain('event: schedule\n')
    abort.abort()
  })

  test('a client with an expired cursor gets a reset, and then the events from now on', async () => {
    await using reader = follow({ lastEventId: '18446744073709551615-1-1-1' })

    const reset = await reader.next()
    const { id } = await admin.schedules.create(DIGEST)
    const next = await reader.next()

    expect(reset).toMatchObject({
      event: 'reset',
      data: { reason: expect.stringContaining('reload what you show') as unknown },
    })
    expect(summaryOf(next)).toBe(`schedule created ${id}`)
    // A client that resumes after the reset misses nothing.
    expect((await takeAfter(reset.id, 1)).map(summaryOf)).toEqual([summaryOf(next)])
  })

  test.each([
    ['Last-Event-ID', '', { 'last-event-id': 'nonsense' }],
    ['query.after', '?after=nonsense', {}],
  ])(
    'an invalid event id is refused with a problem that names %s, before a stream begins',
    async (field, query, headers) => {
      const response = await fetch(`${url}/api/v1/events${query}`, { headers: { ...AUTHORIZED, ...headers } })

      expect(response.headers.get('content-type')).toMatch(/^application\/problem\+json/)
      expect(await response.json()).toMatchObject({ status: 400, errors: [{ field }] })
    },
  )

  test('a client that keeps reconnecting during many changes gets each event once', async () => {
    const tail = await world.eventLog.tail()
    const changes = 120
    const making = Promise.all(
      Array.from({ length: 4 }, async () => {
        for (let count = 0; count < changes / 4; count += 1) await world.scheduler.create(CALLER, DIGEST)
      }),
    )

    // Each client reconnects after every few events. So it catches up while other clients are served and more events are written.
    const restless = async (few: number): Promise<string[]> => {
      const seen: string[] = []
      for (let lastEventId = tail; seen.length < changes;) {
        const events = await takeAfter(lastEventId, Math.min(few, changes - seen.length))
        seen.push(...events.map(summaryOf))
        lastEventId = events.at(-1)?.id ?? lastEventId
      }
      return seen
    }
    const [steady, ...others] = await Promise.all([takeAfter(tail, changes), restless(7), restless(13), restless(29)])
    await making

    const expected = steady.map(summaryOf)
    expect(new Set(expected).size).toBe(changes)
    for (const seen of others) expect(seen).toEqual(expected)
  })
})

describe('refused event streams', () => {
  test('an event stream is refused without a key, and with an unknown parameter', async () => {
    const stranger = await fetch(`${url}/api/v1/events`)
    const unclear = await fetch(`${url}/api/v1/events?since=1`, { headers: AUTHORIZED })

    expect(stranger.status).toBe(401)
    expect(((await unclear.json()) as Problem).errors).toMatchObject([{ field: 'query.since' }])
  })
})

async function takeAfter(lastEventId: string, count: number) {
  await using reader = follow({ lastEventId })
  return await reader.take(count)
}
