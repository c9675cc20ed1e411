import { describe, expect, test } from 'vitest'

import { cadenceOf, printAll, utc } from './cadence-of.ts'

/** A Wednesday, from which slots are searched. */
const FROM = utc('2027-09-01T00:00:00')

function days(expression: string, limit = 4): string[] {
  return printAll(cadenceOf({ kind: 'cron', expression }).slots(FROM, { limit })).map((slot) => slot.slice(5, 10))
}

describe('cron syntax', () => {
  test.each([
    {
      expression: '0 0 1,15 * FRI',
      expected: '09-01 09-03 09-10 09-15 09-17',
      why: 'both day fields restricted, a day matches either',
    },
    {
      expression: '0 0 */14 * FRI',
      expected: '10-01 10-15 10-29 09-01',
      why: 'a star in day of month, a day must match both',
    },
    {
      expression: '0 0 1 * */3',
      expected: '09-01 12-01 01-01 03-01',
      why: 'a star in day of week, a day must match both',
    },
    { expression: '0 0 * * FRI', expected: '09-03 09-10 09-17', why: 'only day of week restricted' },
    { expression: '0 0 13 * *', expected: '09-13 10-13 11-13', why: 'only day of month restricted' },
    { expression: '0 0 L * *', expected: '09-30 10-31 11-30 12-31 01-31 02-29', why: 'the last day of each month' },
    { expression: '0 0 * * 5L', expected: '09-24 10-29 11-26', why: 'the last Friday' },
    { expression: '0 0 * * 0L', expected: '09-26 10-31 11-28', why: 'the last Sunday, as 0' },
    { expression: '0 0 * * 7L', expected: '09-26 10-31 11-28', why: 'the last Sunday, as 7' },
    { expression: '0 0 * * MON#2', expected: '09-13 10-11 11-08', why: 'the second Monday' },
    { expression: '0 0 * * wed#5', expected: '09-29 12-29 03-29', why: 'the fifth Wednesday, where there is one' },
    { expression: '0 0 * * FRI-SUN', expected: '09-03 09-04 09-05 09-10', why: 'a range that ends in Sunday' },
    { expression: '0 0 * * 5-7', expected: '09-03 09-04 09-05 09-10', why: 'the same range in numbers' },
    { expression: '0 0 * * SUN-MON', expected: '09-05 09-06 09-12', why: 'a range that begins with Sunday' },
    { expression: '0 0 * * 0-7', expected: '09-01 09-02 09-03', why: 'all days' },
    { expression: '0 0 * * */7', expected: '09-05 09-12 09-19', why: 'a step of the highest value' },
    { expression: '0 0 31 */31 *', expected: '', why: 'a step beyond the highest value' },
    { expression: '0 0 1 jan-MAR/2 *', expected: '01-01 03-01 01-01', why: 'names in a stepped range, in any case' },
    { expression: '@yearly', expected: '01-01 01-01', why: 'a macro' },
    { expression: '@annually', expected: '01-01 01-01', why: 'a macro with another name' },
    { expression: '@monthly', expected: '09-01 10-01', why: 'a macro' },
    { expression: '@weekly', expected: '09-05 09-12', why: 'a macro: Sunday' },
    { expression: '@daily', expected: '09-01 09-02', why: 'a macro' },
    { expression: '@midnight', expected: '09-01 09-02', why: 'a macro with another name' },
  ])('$expression fires on $expected: $why', ({ expression, expected }) => {
    const dates = expected.split(' ')

    if (expected === '') expect(() => cadenceOf({ kind: 'cron', expression })).toThrow(/step/)
    else expect(days(expression, dates.length)).toEqual(dates)
  })

  test.each([
    { expression: '@hourly', expected: '00:00 01:00 02:00' },
    { expression: '9-17/4 9 * * *', expected: '09:09 09:13 09:17' },
    { expression: '*/25 9 * * *', expected: '09:00 09:25 09:50' },
    { expression: '5,3,3,4 9 * * *', expected: '09:03 09:04 09:05' },
  ])('$expression fires at $expected', ({ expression, expected }) => {
    const slots = printAll(cadenceOf({ kind: 'cron', expression }).slots(FROM, { limit: 3 }))

    expect(slots.map((slot) => slot.slice(11, 16)).join(' ')).toBe(expected)
  })

  test.each([
    { expression: '30 2 * * *', policy: 'shift first' },
    { expression: '0 1,3,5 * * *', policy: 'shift first' },
    { expression: '0 0,23 * * *', policy: 'shift first' },
    { expression: '0 */2 * * *', policy: 'shift first' },
    { expression: '0 1-2 * * *', policy: 'shift both' },
    { expression: '0,59 5 * * *', policy: 'shift both' },
    { expression: '*/15 0-5 * * *', policy: 'shift both' },
    { expression: '0 0-22 * * *', policy: 'shift both' },
    { expression: '0 * * * *', policy: 'skip both' },
    { expression: '*/15 * * * *', policy: 'skip both' },
    { expression: '7-59/26 * * * 1-5', policy: 'skip both' },
  ])('$expression has the default policy $policy', ({ expression, policy }) => {
    const { dst } = cadenceOf({ kind: 'cron', expression, timezone: 'Europe/London' })

    expect(`${dst?.gap} ${dst?.fold}`).toBe(policy)
  })

  test.each([
    { expression: '0 9 * * mon-fri', canonical: '0 9 * * 1-5' },
    { expression: '0 9 * * MON,TUE,3,4,5', canonical: '0 9 * * 1-5' },
    { expression: '@daily', canonical: '0 0 * * *' },
    { expression: '@Midnight', canonical: '0 0 * * *' },
    { expression: '  00 09  * * * ', canonical: '0 9 * * *' },
  ])('the canonical form of $expression is $canonical', ({ expression, canonical }) => {
    expect(cadenceOf({ kind: 'cron', expression }).spec).toMatchObject({ expression: canonical })
  })
})
