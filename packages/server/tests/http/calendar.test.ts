import { createDb, type Db } from '@carillon/core'
import { createDatabase, type TestDatabase } from '@carillon/core/testing'
import ICAL from 'ical.js'
import { describe, expect, test } from 'vitest'

import { earliestSchedules } from '../../src/http/calendar.ts'
import { DIGEST } from './example-schedules.ts'
import { clockAt } from './fixed-clock.ts'
import { ADMIN_KEY, createTestApp, type TestApp } from './test-app.ts'

const URL_OF_CALENDAR = '/api/v1/schedules.ics'
const CALLER = { tenantId: 'default', projectId: 'default', subject: 'service:installation' }
const DAY_MS = 86_400_000
const clock = clockAt('2026-03-02T06:00:00Z')

interface ReadEvent {
  readonly uid: string
  readonly start: string
  readonly seconds: number
  readonly summary: string
  readonly description: string
  readonly status: string
}

async function readCalendar(world: TestApp): Promise<{ description: string; events: ReadEvent[]; text: string }> {
  const answer = await world.request('GET', URL_OF_CALENDAR)
  expect(answer.statusCode, answer.body).toBe(200)
  expect(answer.headers['content-type']).toBe('text/calendar; charset=utf-8')
  const calendar = new ICAL.Component(ICAL.parse(answer.body) as never)
  const events = calendar.getAllSubcomponents('vevent').map((component) => {
    const event = new ICAL.Event(component)
    return {
      uid: event.uid,
      start: event.startDate.toJSDate().toISOString(),
      seconds: event.duration.toSeconds(),
      summary: event.summary,
      description: event.description,
      status: String(component.getFirstPropertyValue('status')),
    }
  })
  return { description: String(calendar.getFirstPropertyValue('x-wr-caldesc')), events, text: answer.body }
}

describe('the calendar', () => {
  test('lists the slots of the next 30 days in order, each as an event of one minute', async () => {
    await using world = await createTestApp({ clock })
    const { id } = await world.admin.schedules.create({ ...DIGEST, name: 'Digest; with, signs\\ and 🔔' })

    const { events, description, text } = await readCalendar(world)

    // Workdays from 2 March to 31 March. On the 30th and 31st, Madrid is two hours ahead of UTC.
    expect(events).toHaveLength(22)
    expect(events[0]).toEqual({
      uid: `${id}-${Date.parse('2026-03-02T08:00:00Z')}@carillon`,
      start: '2026-03-02T08:00:00.000Z',
      seconds: 60,
      summary: 'Digest; with, signs\\ and 🔔',
      description: expect.stringContaining('Target: http.') as unknown,
      status: 'CONFIRMED',
    })
    expect(events.at(-1)?.start).toBe('2026-03-31T07:00:00.000Z')
    expect(description).toBe('Slots of the next 30 days.')
    expect(text).toContain('DTSTAMP:20260302T060000Z')
    expect(text.endsWith('END:VCALENDAR\r\n')).toBe(true)
  })

  test('contains no payload, URL or header of a target', async () => {
    await using world = await createTestApp({ clock })
    const target = {
      kind: 'http',
      url: 'http://127.0.0.1/canary',
      headers: { 'x-canary': 'canary' },
      payload: 'canary',
    } as const
    await world.admin.schedules.create({ ...DIGEST, target })

    expect((await readCalendar(world)).text).not.toContain('canary')
  })

  test('shows a skipped slot as cancelled, and no slots of a paused schedule', async () => {
    await using world = await createTestApp({ clock })
    const { id } = await world.admin.schedules.create(DIGEST)
    await world.admin.schedules.skip(id, '2026-03-03T08:00:00Z')
    const paused = await world.admin.schedules.create({ ...DIGEST, name: 'Paused' })
    await world.admin.schedules.pause(paused.id, { reason: 'test' })

    const { events } = await readCalendar(world)

    expect(events.filter(({ status }) => status === 'CANCELLED').map(({ start }) => start)).toEqual([
      '2026-03-03T08:00:00.000Z',
    ])
    expect(new Set(events.map(({ summary }) => summary))).toEqual(new Set(['Morning digest']))
  })

  test('I9: contains no slots of another project', async () => {
    await using world = await createTestApp({ clock })
    const { key } = await world.admin.keys.create({ project: 'web', subject: 'user:a', role: 'admin' })
    await world.client(key).schedules.create(DIGEST)

    expect((await readCalendar(world)).events).toEqual([])
  })

  test('shows at most 100 slots of a schedule, and states that there are more', async () => {
    await using world = await createTestApp({ clock })
    await world.admin.schedules.create({ ...DIGEST, cadence: { kind: 'interval', every: 'PT1M' } })
    await world.admin.schedules.create({ ...DIGEST, name: 'Rare' })

    const { events, description } = await readCalendar(world)

    expect(events.filter(({ summary }) => summary !== 'Rare')).toHaveLength(100)
    expect(events.filter(({ summary }) => summary === 'Rare')).toHaveLength(22)
    expect(description).toContain('only the earliest are shown')
  })

  test('shows at most 2000 slots, the earliest of all schedules', async () => {
    await using world = await createTestApp({ clock })
    for (let hour = 0; hour < 24; hour += 1) {
      const cadence = { kind: 'cron', expression: `${hour} * * * *` } as const
      await world.scheduler.create(CALLER, { ...DIGEST, name: `at ${hour}`, cadence })
    }

    const { events, description } = await readCalendar(world)

    // 24 schedules with one slot an hour each: 83 whole hours, and the first 8 slots of the next hour.
    const starts = events.map(({ start }) => start)
    expect(events).toHaveLength(2000)
    expect(starts).toEqual(starts.toSorted())
    expect(starts.at(-1)).toBe('2026-03-05T17:07:00.000Z')
    expect(description).toContain('only the earliest are shown')
  })

  test('reads only the schedules that can have one of the earliest slots', async () => {
    await using world = await createTestApp({ clock })
    await createMany(world, 205)
    const from = Date.parse('2026-03-03T00:00:02Z')
    const until = (to: number, count: number) => earliestSchedules(world.scheduler, CALLER, { from, to }, count)

    const some = await until(from + DAY_MS, 3)
    const all = await until(from + DAY_MS, 204)
    const none = await until(from - 1000, 3)

    // The first schedule is overdue, so any of its slots may be among the earliest.
    expect(some.schedules.map(({ nextSlotAt }) => nextSlotAt)).toEqual([-1000, 0, 1000, 2000].map((ms) => from + ms))
    expect(some).toMatchObject({ to: from + 2001, isCut: true })
    expect(all).toMatchObject({ to: from + DAY_MS, isCut: false })
    expect(all.schedules).toHaveLength(205)
    expect(none).toEqual({ schedules: [], to: from - 1000, isCut: false })
  })

  test('reads schedules in pages, without a query for each schedule', async () => {
    await using database = await createDatabase()
    const { db, sent } = countedDb(database)
    await using world = await createTestApp({ clock, database, db })
    await createMany(world, 450)
    const before = sent()

    const { events } = await readCalendar(world)

    expect(events).toHaveLength(450)
    // One read for each page. The statements that begin and end its transaction are not counted.
    expect(sent() - before).toBe(3)
  })

  test('is computed at most twice at a time for a key, and requests with another key are answered meanwhile', async () => {
    await using world = await createTestApp({ clock })
    await world.admin.schedules.create(DIGEST)
    const { key } = await world.admin.keys.create({ project: 'default', subject: 'user:a', role: 'member' })
    const held = await world.database.pool.connect()
    await held.query('begin; lock table carillon.schedule_revisions in access exclusive mode')
    const ask = async (asker = ADMIN_KEY) => world.request('GET', URL_OF_CALENDAR, { key: asker })

    const under = [ask(), ask()]
    const refused = await ask()
    const other = ask(key)
    await held.query('rollback')
    held.release()

    expect(refused.json()).toMatchObject({ status: 429, code: 'rate_limited' })
    expect(refused.headers['retry-after']).toBe('2')
    expect((await Promise.all([...under, other])).map(({ statusCode }) => statusCode)).toEqual([200, 200, 200])
    expect((await ask()).statusCode).toBe(200)
  })

  test('accepts a key as the password of Basic authentication, and asks for it', async () => {
    await using world = await createTestApp({ clock })
    const basic = (text: string): string => `Basic ${Buffer.from(text).toString('base64')}`

    for (const text of [`:${ADMIN_KEY}`, `anybody:${ADMIN_KEY}`]) {
      const headers = { authorization: basic(text) }
      expect((await world.request('GET', URL_OF_CALENDAR, { key: null, headers })).statusCode).toBe(200)
    }
    const refused = await world.request('GET', URL_OF_CALENDAR, { key: null, headers: { authorization: basic('a:b') } })
    expect(refused.statusCode).toBe(401)
    expect(refused.headers['www-authenticate']).toBe('Bearer, Basic realm="Carillon"')
  })
})

/** Creates schedules with one slot each, a second apart. */
async function createMany({ scheduler }: TestApp, count: number): Promise<void> {
  const first = Date.parse('2026-03-03T00:00:00Z')
  await Promise.all(
    Array.from({ length: count }, (_, index) => {
      const at = new Date(first + (index + 1) * 1000).toISOString()
      return scheduler.create(CALLER, { ...DIGEST, cadence: { kind: 'once', at } })
    }),
  )
}

/** The database, and a count of the queries that it has answered. */
function countedDb({ pool }: TestDatabase): { readonly db: Db; readonly sent: () => number } {
  let queries = 0
  const db = createDb(pool, {
    onAnswer: (_, { command }) => {
      if (command === 'SELECT') queries += 1
    },
  })
  return { db, sent: () => queries }
}
