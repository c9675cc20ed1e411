import { expect, test } from 'vitest'

import { SlotCalendar } from './slot-calendar.ts'
import { readCadence } from './spec-cache.ts'

const HOUR = 3_600_000
const DAY = 24 * HOUR
const START = Date.parse('2026-11-14T00:00:00Z')
const cron = (expression: string): string => JSON.stringify({ kind: 'cron', expression, timezone: 'UTC' })

/** As the cadence itself says, one after the other. */
function slotsOf(text: string, from: number, to: number): number[] {
  const cadence = readCadence(text)
  const slots: number[] = []
  for (let slot = cadence.next(from - 1); slot !== null && slot <= to; slot = cadence.next(slot)) slots.push(slot)
  return slots
}

test.each([
  ['every minute', '* * * * *', START + 7, START + 2 * DAY],
  ['daily', '30 5 * * *', START, START + 40 * DAY],
  ['at the edges of what is kept', '*/30 * * * *', START, START + 3 * DAY],
  ['once a year', '0 0 1 1 *', START, START + 90 * DAY],
])('the slots of a cadence are all found, once each: %s', (_what, expression, from, to) => {
  const calendar = new SlotCalendar(readCadence)
  const asked = { from, to, limit: 10_000 }

  const expected = slotsOf(cron(expression), from, to)
  expect(calendar.find(cron(expression), asked).slots).toEqual(expected)
  // And again, from what is kept.
  expect(calendar.find(cron(expression), asked).slots).toEqual(expected)
})

test('no more slots are found than are asked for, and the next one is told', () => {
  const calendar = new SlotCalendar(readCadence)

  const { slots, next } = calendar.find(cron('0 * * * *'), { from: START, to: START + DAY, limit: 8 })

  expect(slots).toEqual(slotsOf(cron('0 * * * *'), START, START + 7 * HOUR))
  expect(next).toBe(START + 8 * HOUR)
})

test('a cadence is read once, and one that ends has no next slot', () => {
  let reads = 0
  const calendar = new SlotCalendar((text) => {
    reads += 1
    return readCadence(text)
  })
  const once = JSON.stringify({ kind: 'once', at: '2026-11-14T12:00:00Z' })

  expect(calendar.find(once, { from: START, to: START + DAY, limit: 10 })).toEqual({
    slots: [START + 12 * HOUR],
    next: null,
  })
  calendar.find(once, { from: START - DAY, to: START, limit: 10 })
  expect(reads).toBe(1)
})
