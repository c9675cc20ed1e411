import fc from 'fast-check'

/** Every syntax that the README allows. Some expressions name a day that does not exist (30 February). */
export function cronExpression(): fc.Arbitrary<string> {
  const fields = fc.tuple(minute(), hour(), dayOfMonth(), month(), dayOfWeek()).map((parts) => parts.join(' '))
  return fc.oneof({ weight: 30, arbitrary: fields }, { weight: 1, arbitrary: macro() })
}

/** An expression with a slot in most weeks, so a sweep over a few days finds some. */
export function frequentCronExpression(): fc.Arbitrary<string> {
  const anyDay = fc.constantFrom('* * *', '* * *', '* * 1-5', '*/2 * *', '* * SUN', '1,15,L * FRI,SUN', '* 3,4,9-11 *')
  return fc.tuple(minute(), hour(), anyDay).map((parts) => parts.join(' '))
}

function macro(): fc.Arbitrary<string> {
  return mixedCase(fc.constantFrom('@yearly', '@annually', '@monthly', '@weekly', '@daily', '@midnight', '@hourly'))
}

function minute(): fc.Arbitrary<string> {
  return field(0, 59, number(0, 59), number(0, 59))
}

function hour(): fc.Arbitrary<string> {
  // Mostly small hours, because that is when DST changes.
  return fc.oneof(number(0, 4), field(0, 23, number(0, 23), number(0, 23)))
}

function dayOfMonth(): fc.Arbitrary<string> {
  return fc.oneof(
    { weight: 2, arbitrary: fc.constant('*') },
    field(1, 31, number(1, 31), fc.oneof(number(1, 31), fc.constant('L'))),
  )
}

function month(): fc.Arbitrary<string> {
  const value = named(1, ['JAN', 'FEB', 'MAR', 'APR', 'MAY', 'JUN', 'JUL', 'AUG', 'SEP', 'OCT', 'NOV', 'DEC'])
  return fc.oneof({ weight: 3, arbitrary: fc.constant('*') }, field(1, 12, value, value))
}

function dayOfWeek(): fc.Arbitrary<string> {
  const value = fc.oneof(named(0, ['SUN', 'MON', 'TUE', 'WED', 'THU', 'FRI', 'SAT']), fc.constant('7'))
  const last = fc.integer({ min: 0, max: 7 }).map((day) => `${day}L`)
  const nth = fc.tuple(value, fc.integer({ min: 1, max: 5 })).map(([day, ordinal]) => `${day}#${ordinal}`)
  const endingInSunday = fc
    .tuple(named(1, ['MON', 'TUE', 'WED', 'THU', 'FRI', 'SAT']), mixedCase(fc.constantFrom('SUN', '7')))
    .map((ends) => ends.join('-'))
  const single = fc.oneof({ weight: 3, arbitrary: value }, last, nth, endingInSunday)
  return fc.oneof(
    { weight: 2, arbitrary: fc.constant('*') },
    field(0, 7, named(0, ['SUN', 'MON', 'TUE', 'WED', 'THU', 'FRI', 'SAT']), single),
  )
}

/** `bound` gives the values at either end of a range, `single` the values outside of ranges. */
function field(
  lowest: number,
  highest: number,
  bound: fc.Arbitrary<string>,
  single: fc.Arbitrary<string>,
): fc.Arbitrary<string> {
  const range = fc
    .tuple(bound, bound)
    .map((ends) => ends.toSorted((a, b) => rank(a) - rank(b)).join('-'))
    // Sunday to Sunday could mean one day or eight: no standard defines it.
    .filter((text) => !/^(sun|0)-sun$/i.test(text))
  const step = fc.integer({ min: 1, max: highest })
  const part = fc.oneof(
    { weight: 4, arbitrary: single },
    { weight: 2, arbitrary: range },
    { weight: 1, arbitrary: fc.tuple(range, step).map((parts) => parts.join('/')) },
    { weight: 2, arbitrary: fc.tuple(fc.constant('*'), step).map((parts) => parts.join('/')) },
    { weight: 1, arbitrary: fc.constantFrom('*', `${lowest}-${highest}`) },
  )
  const list = fc.array(part, { minLength: 2, maxLength: 4 }).map((parts) => parts.join(','))
  return fc.oneof({ weight: 3, arbitrary: part }, { weight: 1, arbitrary: list })
}

const RANKS = [
  'SUN',
  'MON',
  'TUE',
  'WED',
  'THU',
  'FRI',
  'SAT',
  ',',
  'JAN',
  'FEB',
  'MAR',
  'APR',
  'MAY',
  'JUN',
  'JUL',
  'AUG',
  'SEP',
  'OCT',
  'NOV',
  'DEC',
]

/** The number of a value. Names of days count from 0, names of months from 1. */
function rank(value: string): number {
  const index = RANKS.indexOf(value.toUpperCase())
  if (index === -1) return Number(value)
  return index < 7 ? index : index - 7
}

function number(lowest: number, highest: number): fc.Arbitrary<string> {
  return fc.integer({ min: lowest, max: highest }).map(String)
}

function named(first: number, names: string[]): fc.Arbitrary<string> {
  return fc.oneof(number(first, first + names.length - 1), mixedCase(fc.constantFrom(...names)))
}

function mixedCase(text: fc.Arbitrary<string>): fc.Arbitrary<string> {
  return fc.tuple(text, fc.constantFrom('upper', 'lower', 'title')).map(([word, form]) => {
    if (form === 'upper') return word.toUpperCase()
    return form === 'lower' ? word.toLowerCase() : word.charAt(0) + word.slice(1).toLowerCase()
  })
}
