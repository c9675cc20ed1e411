import fc from 'fast-check'
import { describe, expect, test } from 'vitest'

import { frequentCronExpression } from './arbitrary/cron-expression.ts'
import { partialPolicy } from './arbitrary/policy.ts'
import { zoneAndInstant } from './arbitrary/zone-and-instant.ts'
import { cadenceOf, utc } from './cadence-of.ts'
import { CronMatcher } from './oracle/cron-matcher.ts'
import { DAY, zone } from './oracle/zone.ts'
import { PROPERTY_TIMEOUT, RUNS } from './runs.ts'

const NEW_YORK = 'America/New_York'
const SPRING = utc('2027-03-14T07:00:00')
const AUTUMN = utc('2027-11-07T06:00:00')

function warn(input: object) {
  const warnings = cadenceOf({ timezone: NEW_YORK, ...input }).warnings(utc('2027-01-01T00:00:00'))
  return warnings.filter(({ at }) => at <= AUTUMN).map(({ code, at, local, effect }) => ({ code, at, local, effect }))
}

const gap = (local: string, effect: string) => ({ code: 'dst_gap', at: SPRING, local, effect })
const fold = (local: string, effect: string) => ({ code: 'dst_fold', at: AUTUMN, local, effect })

describe('warnings', () => {
  test.each([
    { input: { kind: 'cron', expression: '30 2 * * *' }, expected: [gap('2027-03-14T02:30:00', 'shifted')] },
    {
      input: { kind: 'cron', expression: '30 2 * * *', dst: { gap: 'skip' } },
      expected: [gap('2027-03-14T02:30:00', 'skipped')],
    },
    { input: { kind: 'cron', expression: '30 1 * * *' }, expected: [fold('2027-11-07T01:30:00', 'first_pass')] },
    {
      input: { kind: 'cron', expression: '30 1 * * *', dst: { fold: 'second' } },
      expected: [fold('2027-11-07T01:30:00', 'second_pass')],
    },
    {
      input: { kind: 'cron', expression: '*/15 * * * *' },
      expected: [gap('2027-03-14T02:00:00', 'skipped'), fold('2027-11-07T01:00:00', 'both_passes')],
    },
    { input: { kind: 'cron', expression: '30 2 * * MON' }, expected: [] },
    { input: { kind: 'cron', expression: '0 9 * * *' }, expected: [] },
    { input: { kind: 'cron', expression: '0 3 * * *' }, expected: [] },
    { input: { kind: 'cron', expression: '30 2 * * *', timezone: 'Asia/Kolkata' }, expected: [] },
    { input: { kind: 'cron', expression: '30 2 * * *', endAt: '2027-03-01T00:00:00Z' }, expected: [] },
    {
      input: { kind: 'rrule', rule: 'FREQ=DAILY', start: '2027-01-01T02:30:00' },
      expected: [gap('2027-03-14T02:30:00', 'shifted')],
    },
    {
      input: { kind: 'rrule', rule: 'FREQ=DAILY', start: '2027-01-01T02:30:00', exdates: ['2027-03-14'] },
      expected: [],
    },
    { input: { kind: 'rrule', rule: 'FREQ=DAILY;COUNT=10', start: '2027-01-01T02:30:00' }, expected: [] },
    {
      input: { kind: 'frequency', frequency: 'weekly', dayOfWeek: 0, timeOfDay: '01:30' },
      expected: [fold('2027-11-07T01:30:00', 'first_pass')],
    },
    { input: { kind: 'frequency', frequency: 'weekly', dayOfWeek: 1, timeOfDay: '01:30' }, expected: [] },
    {
      input: { kind: 'interval', every: 'P1D', startAt: '2027-01-01T07:30:00Z' },
      expected: [gap('2027-03-14T02:30:00', 'shifted')],
    },
    { input: { kind: 'interval', every: 'PT15M', startAt: '2027-01-01T07:30:00Z' }, expected: [] },
    { input: { kind: 'once', at: '2027-03-14T02:30:00' }, expected: [gap('2027-03-14T02:30:00', 'shifted')] },
    { input: { kind: 'once', at: '2027-11-07T01:30:00' }, expected: [fold('2027-11-07T01:30:00', 'first_pass')] },
    { input: { kind: 'once', at: '2027-11-07T05:30:00Z' }, expected: [] },
  ])('$input gives the warnings $expected for 2027', ({ input, expected }) => {
    expect(warn(input)).toEqual(expected)
  })

  test('have a message that states what happens, in which zone and when', () => {
    const [warning] = cadenceOf({ kind: 'cron', expression: '30 2 * * *', timezone: NEW_YORK }).warnings(
      utc('2027-01-01T00:00:00'),
    )

    expect(warning?.message).toContain('14 March 2027')
    expect(warning?.message).toContain(NEW_YORK)
    expect(warning?.message).toMatch(/02:30.*03:00/)
  })
})

describe('warnings, against the transitions themselves', { timeout: PROPERTY_TIMEOUT }, () => {
  test('a transition of the next year has a warning if and only if it affects a local time of the cadence', () => {
    fc.assert(
      fc.property(
        frequentCronExpression(),
        zoneAndInstant(),
        partialPolicy(),
        (expression, { timezone, instant }, dst) => {
          const place = zone(timezone)
          // The local times are computed in UTC, where no time is skipped or repeated.
          const matcher = new CronMatcher(expression, zone('UTC'))
          const touched = place.transitions(instant + 1, instant + 365 * DAY).filter(({ at, before, after }) => {
            const [low = 0, high = 0] = [at + before, at + after].toSorted((a, b) => a - b)
            return matcher.slots(low, high).length > 0
          })

          const warnings = cadenceOf({ kind: 'cron', expression, timezone, dst }).warnings(instant)

          const near = warnings.filter(({ at }) => at > instant && at < instant + 365 * DAY)
          expect(near.map(({ at }) => place.print(at))).toEqual(touched.map(({ at }) => place.print(at)))
        },
      ),
      { numRuns: RUNS },
    )
  })
})

describe('warnings of a rule with exceptions', () => {
  const madrid = { kind: 'rrule', rule: 'FREQ=DAILY', start: '2026-01-01T02:30:00', timezone: 'Europe/Madrid' }
  const codes = (input: object, from: string): string[] =>
    cadenceOf(input)
      .warnings(utc(from))
      .map(({ code, at }) => `${code} ${new Date(at).toISOString().slice(0, 10)}`)

  test('are not given for slots that UNTIL or exdates removed', () => {
    const untilMarch = { ...madrid, rule: 'FREQ=DAILY;UNTIL=20260328T120000Z' }
    const without = {
      ...untilMarch,
      rule: 'FREQ=DAILY;COUNT=300',
      exdates: ['2026-10-25T00:30:00Z', '2026-10-25T01:30:00Z'],
    }

    expect(codes(untilMarch, '2026-01-01T00:00:00')).toEqual([])
    expect(codes(without, '2026-04-01T00:00:00')).toEqual([])
  })

  test('are given for rdates in a gap', () => {
    const added = { ...madrid, rule: 'FREQ=DAILY;COUNT=1', rdates: ['2026-03-29T02:30:00'] }

    expect(codes(added, '2026-01-02T00:00:00')).toEqual(['dst_gap 2026-03-29'])
  })

  test('are given until the second pass of a repeated hour ends', () => {
    const second = { ...madrid, dst: { fold: 'second' } }

    expect(codes(second, '2026-10-25T01:15:00')[0]).toBe('dst_fold 2026-10-25')
    expect(codes(second, '2026-10-25T02:15:00')[0]).toBe('dst_gap 2027-03-28')
  })
})
