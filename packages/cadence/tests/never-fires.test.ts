import { describe, expect, test } from 'vitest'

import { cadenceOf, problemsOf, printAll } from './cadence-of.ts'
import { labelled } from './labelled.ts'

const START = { start: '2027-01-01T09:00:00' }

describe('a cadence that never fires', () => {
  test.each(
    labelled([
      { kind: 'cron', expression: '0 0 30 2 *' },
      { kind: 'cron', expression: '0 0 31 2,4,6,9,11 *' },
      { kind: 'cron', expression: '0 0 30-31 FEB *' },
      { kind: 'cron', expression: '0 0 */31 2 5#5' },
      { kind: 'cron', expression: '0 0 */26 * SUN#3' },
      { kind: 'cron', expression: '0 0 1 1 *', startAt: '2027-02-01T00:00:00Z', endAt: '2027-12-31T00:00:00Z' },
      { kind: 'cron', expression: '* * * * *', startAt: '2027-02-01T00:00:01Z', endAt: '2027-02-01T00:00:59Z' },
      {
        kind: 'cron',
        expression: '30 2 14 3 *',
        timezone: 'America/New_York',
        dst: { gap: 'skip' },
        startAt: '2027-01-01T00:00:00Z',
        endAt: '2027-12-31T00:00:00Z',
      },
      { kind: 'rrule', rule: 'FREQ=YEARLY;BYMONTH=2;BYMONTHDAY=30', ...START },
      { kind: 'rrule', rule: 'FREQ=MONTHLY;BYMONTH=2;BYMONTHDAY=30', ...START },
      { kind: 'rrule', rule: 'FREQ=DAILY;BYMONTH=2;BYMONTHDAY=30', ...START },
      { kind: 'rrule', rule: 'FREQ=HOURLY;BYMONTH=2;BYMONTHDAY=30', ...START },
      { kind: 'rrule', rule: 'FREQ=MINUTELY;BYMONTH=2;BYMONTHDAY=30', ...START },
      { kind: 'rrule', rule: 'FREQ=SECONDLY;INTERVAL=60;BYMONTH=2;BYMONTHDAY=30', ...START },
      {
        kind: 'rrule',
        rule: 'FREQ=MONTHLY;INTERVAL=12',
        start: '2027-02-28T09:00:00',
        exdates: [],
        endAt: '2027-02-01T00:00:00Z',
      },
      { kind: 'rrule', rule: 'FREQ=YEARLY;BYWEEKNO=20;BYMONTH=12', ...START },
      { kind: 'rrule', rule: 'FREQ=MINUTELY;INTERVAL=30;BYMINUTE=15', ...START },
      { kind: 'rrule', rule: 'FREQ=DAILY;UNTIL=20261231T000000Z', ...START },
      { kind: 'rrule', rule: 'FREQ=DAILY;UNTIL=20261231', ...START },
      { kind: 'rrule', rule: 'FREQ=DAILY;COUNT=2', ...START, exdates: ['2027-01-01', '2027-01-02T09:00:00'] },
      { kind: 'rrule', rule: 'FREQ=DAILY;COUNT=2', ...START, startAt: '2027-01-03T00:00:00Z' },
      {
        kind: 'interval',
        every: 'P1D',
        startAt: '2027-03-14T02:30:00',
        endAt: '2027-03-14T23:00:00',
        timezone: 'America/New_York',
        dst: { gap: 'skip' },
      },
      { kind: 'once', at: '2027-03-14T02:30:00[America/New_York]', dst: { gap: 'skip' } },
      { kind: 'once', at: '2011-12-30T12:00:00[Pacific/Apia]', dst: { gap: 'skip' } },
      {
        kind: 'frequency',
        frequency: 'monthly',
        dayOfWeek: 1,
        timeOfDay: '09:00',
        startAt: '2027-01-05T00:00:00Z',
        endAt: '2027-01-31T00:00:00Z',
      },
      {
        kind: 'frequency',
        frequency: 'weekly',
        dayOfWeek: 0,
        timeOfDay: '02:30',
        timezone: 'America/New_York',
        dst: { gap: 'skip' },
        startAt: '2027-03-14T00:00:00Z',
        endAt: '2027-03-15T00:00:00Z',
      },
      {
        kind: 'frequency',
        frequency: 'biweekly',
        dayOfWeek: 1,
        timeOfDay: '09:00',
        anchor: '2027-01-04',
        startAt: '2027-01-05T00:00:00Z',
        endAt: '2027-01-17T00:00:00Z',
      },
    ]),
  )('is rejected: %s', (_, input) => {
    expect(problemsOf(input).map(({ code }) => code)).toEqual(['never_fires'])
  })

  // The budget may be too small to prove that these have no slot, so either code is right.
  test.each(
    labelled([
      { kind: 'rrule', rule: 'FREQ=YEARLY;INTERVAL=2;BYYEARDAY=366', ...START },
      { kind: 'rrule', rule: 'FREQ=MONTHLY;BYDAY=MO,TU;BYMONTHDAY=1;BYSETPOS=2', ...START },
      { kind: 'rrule', rule: 'FREQ=DAILY;BYSETPOS=3;BYHOUR=1,2', ...START },
      { kind: 'rrule', rule: 'FREQ=SECONDLY;INTERVAL=3600;BYMINUTE=30;BYSETPOS=2', ...START },
      { kind: 'rrule', rule: 'FREQ=MINUTELY;INTERVAL=30;BYMINUTE=0;BYSETPOS=2', ...START },
    ]),
  )('is rejected as never firing or as too complex: %s', (_, input) => {
    const [problem, ...others] = problemsOf(input)

    expect(['never_fires', 'too_complex']).toContain(problem?.code)
    expect(problem?.field).toBe('rule')
    expect(others).toEqual([])
  })

  test.each([
    { kind: 'interval', every: 'P1D', startAt: '2027-03-15T00:00:00Z', endAt: '2027-03-14T00:00:00Z' },
    { kind: 'cron', expression: '0 9 * * *', startAt: '2027-03-15T00:00:00Z', endAt: '2027-03-14T00:00:00Z' },
    { kind: 'interval', every: 'P1D', startAt: '2027-03-15T09:00:00Z', endAt: '2027-03-15T08:59:59Z' },
  ])('with an end before its start is rejected as a conflict: $kind', (input) => {
    expect(problemsOf(input).map(({ code, field }) => ({ code, field }))).toEqual([
      { code: 'conflict', field: 'endAt' },
    ])
  })
})

describe('a cadence that fires rarely', () => {
  test.each(
    labelled([
      {
        input: { kind: 'cron', expression: '0 0 29 2 *' },
        after: '2096-03-01T00:00:00Z',
        next: '2104-02-29T00:00:00.000Z',
      },
      {
        input: { kind: 'rrule', rule: 'FREQ=YEARLY;BYMONTH=2;BYMONTHDAY=29;BYDAY=MO', ...START },
        after: '2027-01-01T00:00:00Z',
        next: '2044-02-29T09:00:00.000Z',
      },
      {
        input: { kind: 'rrule', rule: 'FREQ=YEARLY;BYYEARDAY=366', ...START },
        after: '2097-01-01T00:00:00Z',
        next: '2104-12-31T09:00:00.000Z',
      },
      {
        input: { kind: 'rrule', rule: 'FREQ=YEARLY;INTERVAL=100', ...START },
        after: '2027-06-01T00:00:00Z',
        next: '2127-01-01T09:00:00.000Z',
      },
      {
        input: { kind: 'interval', every: 'P100Y', startAt: '2027-01-01T09:00:00Z' },
        after: '2027-06-01T00:00:00Z',
        next: '2127-01-01T09:00:00.000Z',
      },
    ]),
  )('is accepted: %s', (_, { input, after, next }) => {
    expect(printAll([cadenceOf(input).next(Date.parse(after))])).toEqual([next])
  })
})
