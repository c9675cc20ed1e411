import fc from 'fast-check'
import { describe, expect, test } from 'vitest'

import { parse } from '../src/index.ts'
import { frequentCronExpression } from './arbitrary/cron-expression.ts'
import { elapsedDuration } from './arbitrary/duration.ts'
import { cadenceOf, problemsOf } from './cadence-of.ts'
import { labelled } from './labelled.ts'
import { CronMatcher } from './oracle/cron-matcher.ts'
import { printDuration, timeOf } from './oracle/interval.ts'
import { DAY, SECOND, zone } from './oracle/zone.ts'
import { PROPERTY_TIMEOUT, RUNS } from './runs.ts'

const DAY_SECONDS = 86_400
const START = { start: '2027-01-01T00:00:00' }
const START_AT = { startAt: '2027-01-31T00:00:00Z' }

describe('the minimum distance between two slots', () => {
  test.each(
    labelled([
      { kind: 'cron', expression: '* * * * *' },
      { kind: 'rrule', rule: 'FREQ=SECONDLY;INTERVAL=60', ...START },
      { kind: 'rrule', rule: 'FREQ=SECONDLY;BYSECOND=0', ...START },
      { kind: 'rrule', rule: 'FREQ=MINUTELY', ...START },
      { kind: 'rrule', rule: 'FREQ=DAILY', ...START, rdates: ['2027-01-02T00:01:00'] },
      { kind: 'interval', every: 60, ...START_AT },
      { kind: 'interval', every: 'PT1M', ...START_AT },
    ]),
  )('is 60 seconds by default: %s is accepted', (_, input) => {
    expect(parse(input).ok).toBe(true)
  })

  test.each(
    labelled([
      { kind: 'rrule', rule: 'FREQ=SECONDLY', ...START },
      { kind: 'rrule', rule: 'FREQ=SECONDLY;INTERVAL=59', ...START },
      { kind: 'rrule', rule: 'FREQ=SECONDLY;BYHOUR=9', ...START },
      { kind: 'rrule', rule: 'FREQ=MINUTELY;BYSECOND=0,30', ...START },
      { kind: 'rrule', rule: 'FREQ=MINUTELY;INTERVAL=30;BYSECOND=0,59', ...START },
      { kind: 'rrule', rule: 'FREQ=YEARLY;BYHOUR=9;BYSECOND=0,59', ...START },
      { kind: 'rrule', rule: 'FREQ=DAILY;BYHOUR=0,23;BYMINUTE=0,59;BYSECOND=0,1', ...START },
      { kind: 'rrule', rule: 'FREQ=DAILY;BYHOUR=0,23;BYMINUTE=0,59;BYSECOND=30,31;BYSETPOS=1,2', ...START },
      { kind: 'rrule', rule: 'FREQ=DAILY', ...START, rdates: ['2027-01-02T00:00:59'] },
      { kind: 'rrule', rule: 'FREQ=DAILY', ...START, rdates: ['2027-06-02T12:00:00', '2027-06-02T12:00:30'] },
      { kind: 'interval', every: 59, ...START_AT },
      { kind: 'interval', every: 1, ...START_AT },
      { kind: 'interval', every: 'PT59S', ...START_AT },
      { kind: 'interval', every: 'R/2027-01-01T00:00:00Z/PT30S' },
    ]),
  )('is 60 seconds by default: %s is too frequent', (_, input) => {
    expect(problemsOf(input).map(({ code }) => code)).toEqual(['too_frequent'])
  })

  test.each(
    labelled([
      { input: { kind: 'cron', expression: '*/30 * * * *' }, seconds: 1_800 },
      { input: { kind: 'cron', expression: '0 9 * * *' }, seconds: DAY_SECONDS },
      { input: { kind: 'cron', expression: '0,59 0,23 * * *' }, seconds: 60 },
      { input: { kind: 'cron', expression: '0 9 1 * *' }, seconds: 28 * DAY_SECONDS },
      { input: { kind: 'cron', expression: '0 9 1,L * *' }, seconds: DAY_SECONDS },
      { input: { kind: 'cron', expression: '0 0 1 3 *' }, seconds: 365 * DAY_SECONDS },
      { input: { kind: 'cron', expression: '0 0 29 2 *' }, seconds: 1_461 * DAY_SECONDS },
      { input: { kind: 'rrule', rule: 'FREQ=HOURLY;INTERVAL=7', ...START }, seconds: 7 * 3_600 },
      { input: { kind: 'rrule', rule: 'FREQ=WEEKLY;BYDAY=MO,TU', ...START }, seconds: DAY_SECONDS },
      { input: { kind: 'rrule', rule: 'FREQ=MONTHLY;BYDAY=1MO', ...START }, seconds: 28 * DAY_SECONDS },
      { input: { kind: 'interval', every: 'P1D', ...START_AT }, seconds: DAY_SECONDS },
      { input: { kind: 'interval', every: 'P1M', ...START_AT }, seconds: 28 * DAY_SECONDS },
      { input: { kind: 'interval', every: 'PT90M', ...START_AT }, seconds: 5_400 },
      { input: { kind: 'frequency', frequency: 'weekly', dayOfWeek: 1, timeOfDay: '09:00' }, seconds: 7 * DAY_SECONDS },
      {
        input: { kind: 'frequency', frequency: 'biweekly', dayOfWeek: 1, timeOfDay: '09:00', anchor: '2027-01-04' },
        seconds: 14 * DAY_SECONDS,
      },
      {
        input: { kind: 'frequency', frequency: 'monthly', dayOfWeek: 1, timeOfDay: '09:00' },
        seconds: 28 * DAY_SECONDS,
      },
    ]),
  )('can be set by the caller: %s', (_, { input, seconds }) => {
    expect(parse(input, { minimumSeconds: seconds }).ok).toBe(true)
    expect(problemsOf(input, { minimumSeconds: seconds + 1 }).map(({ code }) => code)).toEqual(['too_frequent'])
  })

  test('is measured in local time, so a day of 23 hours counts as 24', () => {
    const input = { kind: 'cron', expression: '0 9 * * *', timezone: 'America/New_York' }
    const cadence = cadenceOf(input, { minimumSeconds: DAY_SECONDS })
    const [before = 0, after = 0] = cadence.slots(Date.UTC(2027, 2, 13), { limit: 2 })

    expect(after - before).toBe(23 * 3_600 * SECOND)
  })

  test('does not apply to a cadence with one slot', () => {
    const one = [
      { kind: 'once', at: '2027-01-01T00:00:00Z' },
      { kind: 'rrule', rule: 'FREQ=SECONDLY;COUNT=1', ...START },
    ]

    for (const input of one) expect(parse(input, { minimumSeconds: 1_000_000 }).ok).toBe(true)
  })
})

describe('the minimum distance, by brute force', { timeout: PROPERTY_TIMEOUT }, () => {
  test('a cron expression is rejected if the minimum exceeds its smallest local distance by one second', () => {
    fc.assert(
      fc.property(frequentCronExpression(), (expression) => {
        const seconds = closest(expression) / SECOND

        expect(parse({ kind: 'cron', expression }, { minimumSeconds: seconds }).ok).toBe(true)
        expect(
          problemsOf({ kind: 'cron', expression }, { minimumSeconds: seconds + 1 }).map(({ code }) => code),
        ).toEqual(['too_frequent'])
      }),
      { numRuns: RUNS },
    )
  })

  test('an elapsed interval is rejected if the minimum exceeds it by one second', () => {
    fc.assert(
      fc.property(elapsedDuration(), (duration) => {
        const input = { kind: 'interval', every: printDuration(duration), ...START_AT }
        const seconds = timeOf(duration) / SECOND

        expect(parse(input, { minimumSeconds: seconds }).ok).toBe(true)
        expect(problemsOf(input, { minimumSeconds: seconds + 1 }).map(({ code }) => code)).toEqual(['too_frequent'])
      }),
      { numRuns: RUNS },
    )
  })
})

/** The smallest distance between two slots in UTC: within a day, or from the last time of a day to the first of the next. */
function closest(expression: string): number {
  const matcher = new CronMatcher(expression, zone('UTC'))
  const days = daysOf(expression)
  const [day = 0] = days
  const times = matcher.slots(day, day + DAY)
  const overnight = leastStep(days) - ((times.at(-1) ?? 0) - (times[0] ?? 0))
  return Math.min(leastStep(times), overnight)
}

const knownDays = new Map<string, number[]>()

/** Eight years contain every distance that the day patterns of this test produce. */
function daysOf(expression: string): number[] {
  const pattern = `0 0 ${expression.split(' ').slice(2).join(' ')}`
  let days = knownDays.get(pattern)
  if (days === undefined) {
    const matcher = new CronMatcher(pattern, zone('UTC'))
    days = Array.from({ length: 8 * 366 }, (_, index) => Date.UTC(2024, 0, 1) + index * DAY).filter((day) =>
      matcher.isDay(day),
    )
    knownDays.set(pattern, days)
  }
  return days
}

function leastStep(values: number[]): number {
  return Math.min(...values.slice(1).map((value, index) => value - (values[index] ?? 0)))
}
