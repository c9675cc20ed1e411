import fc from 'fast-check'
import { describe, expect, test } from 'vitest'

import { parse } from '../src/index.ts'
import { validInput } from './arbitrary/hostile-input.ts'
import { cadenceOf } from './cadence-of.ts'
import { labelled } from './labelled.ts'
import { PROPERTY_TIMEOUT, RUNS } from './runs.ts'

const NEW_YORK = 'America/New_York'

describe('a description', () => {
  test('is the sentence that the README shows', () => {
    expect(cadenceOf({ kind: 'cron', expression: '30 2 * * *', timezone: NEW_YORK }).describe()).toBe(
      'At 02:30 every day, in America/New_York',
    )
  })

  test.each(
    labelled([
      { input: { kind: 'cron', expression: '0 9 * * 1-5' }, words: ['09:00', 'Monday', 'Friday'] },
      { input: { kind: 'cron', expression: '*/15 * * * *' }, words: ['15 minutes'] },
      { input: { kind: 'cron', expression: '0 9 L * *' }, words: ['09:00', 'last day'] },
      { input: { kind: 'cron', expression: '0 9 * * MON#2' }, words: ['09:00', '2nd Monday'] },
      { input: { kind: 'cron', expression: '0 9 * * 5L' }, words: ['09:00', 'last Friday'] },
      { input: { kind: 'cron', expression: '0 9 1 * MON' }, words: ['09:00', ' or ', 'Monday'] },
      { input: { kind: 'cron', expression: '0 9 */2 * MON' }, words: ['09:00', 'Monday'] },
      { input: { kind: 'cron', expression: '@yearly' }, words: ['00:00', 'January'] },
      { input: { kind: 'rrule', rule: 'FREQ=DAILY', start: '2027-01-01T09:00:00' }, words: ['09:00', 'day'] },
      {
        input: { kind: 'rrule', rule: 'FREQ=WEEKLY;BYDAY=MO,WE', start: '2027-01-01T09:00:00' },
        words: ['Monday', 'Wednesday'],
      },
      {
        input: { kind: 'rrule', rule: 'FREQ=MONTHLY;BYDAY=-1FR', start: '2027-01-01T09:00:00' },
        words: ['last Friday'],
      },
      {
        input: { kind: 'rrule', rule: 'FREQ=DAILY;INTERVAL=3;COUNT=5', start: '2027-01-01T09:00:00' },
        words: ['3 days', '5'],
      },
      {
        input: { kind: 'interval', every: 'PT15M', startAt: '2027-01-01T09:00:00Z' },
        words: ['15 minutes', '1 January 2027'],
      },
      {
        input: { kind: 'interval', every: 'P1M', startAt: '2027-01-31T09:00:00Z' },
        words: ['month', '31 January 2027'],
      },
      { input: { kind: 'interval', every: 90, startAt: '2027-01-01T09:00:00Z' }, words: ['minute', '30 seconds'] },
      {
        input: { kind: 'frequency', frequency: 'weekly', dayOfWeek: 1, timeOfDay: '09:00' },
        words: ['Monday', '09:00'],
      },
      {
        input: { kind: 'frequency', frequency: 'biweekly', dayOfWeek: 0, timeOfDay: '09:00', anchor: '2027-01-03' },
        words: ['Sunday', '09:00'],
      },
      {
        input: { kind: 'frequency', frequency: 'monthly', dayOfWeek: 6, timeOfDay: '23:59' },
        words: ['first Saturday', '23:59'],
      },
      {
        input: { kind: 'once', at: '2026-12-24T18:00:00[Europe/Madrid]' },
        words: ['24 December 2026', '18:00', 'Europe/Madrid'],
      },
      {
        input: {
          kind: 'cron',
          expression: '0 9 * * *',
          startAt: '2027-01-01T00:00:00Z',
          endAt: '2028-02-03T00:00:00Z',
          maxRuns: 7,
        },
        words: ['1 January 2027', '3 February 2028', '7'],
      },
    ]),
  )('contains the expected words: %s', (_, { input, words }) => {
    const description = cadenceOf(input).describe()

    for (const word of words) expect(description).toContain(word)
  })

  test('distinguishes "day of month and day of week" from "day of month or day of week"', () => {
    const either = cadenceOf({ kind: 'cron', expression: '0 9 1-31/2 * MON' }).describe()
    const both = cadenceOf({ kind: 'cron', expression: '0 9 */2 * MON' }).describe()

    expect(both).not.toBe(either)
  })
})

describe('the description of any accepted input', { timeout: PROPERTY_TIMEOUT }, () => {
  test('is a sentence in plain words that names the zone', () => {
    fc.assert(
      fc.property(validInput(), (input) => {
        const parsed = parse(input, { now: Date.UTC(2027, 0, 15) })
        if (!parsed.ok) return

        const description = parsed.cadence.describe()

        expect(description).not.toMatch(/undefined|null|NaN|\[object|\bInvalid\b|\*/)
        expect(description).toMatch(/^[A-Z].*\S$/)
        expect(description).toContain(parsed.cadence.timezone)
      }),
      { numRuns: RUNS },
    )
  })
})
