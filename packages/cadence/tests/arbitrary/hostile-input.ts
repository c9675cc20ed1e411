import fc from 'fast-check'

import { printDuration } from '../oracle/interval.ts'
import { printWall } from '../oracle/zone.ts'
import { GOLDEN_ZONES, OTHER_ZONES } from '../oracle/zones.ts'
import { cronExpression } from './cron-expression.ts'
import { calendarDuration, elapsedDuration } from './duration.ts'
import { anyRule } from './rrule-text.ts'

type Fields = Record<string, unknown>

/** Valid input of every kind, with any of the optional fields. */
export function validInput(): fc.Arbitrary<Fields> {
  const bounds = fc.record(
    {
      timezone: fc.constantFrom(...GOLDEN_ZONES, ...OTHER_ZONES),
      startAt: fc.constantFrom('2027-01-01T00:00:00Z', '2027-03-14T02:30:00', '2011-12-30T12:00:00Z'),
      endAt: fc.constantFrom('2030-01-01T00:00:00Z', '2028-10-29T02:30:00'),
      maxRuns: fc.integer({ min: 1, max: 10_000 }),
      dst: fc.record(
        { gap: fc.constantFrom('shift', 'skip'), fold: fc.constantFrom('first', 'second', 'both') },
        { requiredKeys: [] },
      ),
    },
    { requiredKeys: [] },
  )
  const recurring = fc.oneof(
    cronExpression().map((expression): Fields => ({ kind: 'cron', expression })),
    anyRule().map(({ rule, start }): Fields => ({ kind: 'rrule', rule, start: printWall(start) })),
    fc
      .oneof(calendarDuration(), elapsedDuration())
      .map((duration): Fields => ({ kind: 'interval', every: printDuration(duration) })),
    fc.record({
      kind: fc.constant('frequency'),
      frequency: fc.constantFrom('weekly', 'biweekly', 'monthly'),
      dayOfWeek: fc.nat({ max: 6 }),
      timeOfDay: fc.constantFrom('00:00', '02:30', '09:00', '23:59'),
    }),
  )
  const once = fc.constantFrom<Fields>(
    { kind: 'once', at: '2026-12-24T18:00:00Z' },
    { kind: 'once', at: '2026-12-24T18:00:00[Europe/Madrid]' },
    { kind: 'once', at: '2027-03-14T02:30:00', timezone: 'America/New_York' },
  )
  return fc.oneof(
    { weight: 8, arbitrary: fc.tuple(recurring, bounds).map(([rule, more]) => ({ ...rule, ...more })) },
    once,
  )
}

/** Valid input with one error: a character, a value, an extra field or a missing one. */
export function mutatedInput(): fc.Arbitrary<Fields> {
  const change = fc.oneof(editText(), replaceValue(), dropField(), addField())
  return fc.tuple(validInput(), fc.array(change, { minLength: 1, maxLength: 2 })).map(([input, changes]) => {
    let changed = input
    for (const apply of changes) changed = apply(changed)
    return changed
  })
}

/** Input whose main field is an arbitrary string. */
export function stringInput(): fc.Arbitrary<Fields> {
  const shells = fc.constantFrom<[Fields, string]>(
    [{ kind: 'once' }, 'at'],
    [{ kind: 'cron' }, 'expression'],
    [{ kind: 'cron', expression: '0 9 * * *' }, 'timezone'],
    [{ kind: 'cron', expression: '0 9 * * *' }, 'startAt'],
    [{ kind: 'cron', expression: '0 9 * * *' }, 'endAt'],
    [{ kind: 'rrule', start: '2027-01-01T09:00:00' }, 'rule'],
    [{ kind: 'rrule', rule: 'FREQ=DAILY' }, 'start'],
    [{ kind: 'interval' }, 'every'],
    [{ kind: 'frequency', frequency: 'biweekly', dayOfWeek: 1, timeOfDay: '09:00' }, 'anchor'],
    [{ kind: 'frequency', frequency: 'weekly', dayOfWeek: 1 }, 'timeOfDay'],
    [{}, 'kind'],
  )
  return fc.tuple(shells, text()).map(([[shell, field], value]) => ({ ...shell, [field]: value }))
}

/** Any value, with and without prototypes, including dates, maps, sparse arrays, and proxies of JSON. */
export function anything(): fc.Arbitrary<unknown> {
  return fc.anything({
    withBigInt: true,
    withDate: true,
    withMap: true,
    withSet: true,
    withNullPrototype: true,
    withObjectString: true,
    withSparseArray: true,
    withTypedArray: true,
  })
}

function text(): fc.Arbitrary<string> {
  const alphabet = [
    ...'0123456789*/,-#LWH?@;=TZPRYMD:.+ []ABEFINOSUV'.split(''),
    '\u0000',
    '\n',
    '\t',
    '０',
    '٣',
    '\u202e',
    '\ud800',
  ]
  return fc.oneof(
    fc.string({ unit: 'binary', maxLength: 200 }),
    fc.array(fc.constantFrom(...alphabet), { maxLength: 60 }).map((characters) => characters.join('')),
    fc
      .array(
        fc.constantFrom(
          'FREQ=',
          'SECONDLY',
          'YEARLY',
          ';',
          'BYDAY=',
          '-53MO',
          ',',
          'BYSETPOS=',
          '366',
          'BYYEARDAY=',
          'INTERVAL=',
          '9999',
          'COUNT=',
          'UNTIL=',
          '99991231',
          'BYMONTH=2',
          'BYMONTHDAY=30',
          '\n',
          'RRULE:',
          'DTSTART:',
          'EXDATE:',
        ),
        { maxLength: 20 },
      )
      .map((words) => words.join('')),
    fc
      .array(
        fc.constantFrom('*', '*/2', '31', '2', 'L', '5L', 'MON#5', 'FEB', '0-59', ' ', ' ', ' ', ' ', ',', '/', '29'),
        { maxLength: 20 },
      )
      .map((words) => words.join('')),
    fc
      .array(
        fc.constantFrom(
          'P',
          'T',
          '1',
          '0',
          '99999',
          'Y',
          'M',
          'W',
          'D',
          'H',
          'S',
          'R5/',
          '2027-01-01T00:00:00Z',
          '/',
          '-',
          '.5',
        ),
        { maxLength: 10 },
      )
      .map((words) => words.join('')),
  )
}

function editText(): fc.Arbitrary<(input: Fields) => Fields> {
  return fc
    .tuple(fc.nat(), fc.nat(), fc.nat({ max: 3 }), text())
    .map(([which, where, removed, inserted]) => (input) => {
      const names = Object.keys(input).filter((name) => typeof input[name] === 'string')
      const name = names[which % Math.max(1, names.length)]
      if (name === undefined) return input
      const value = String(input[name])
      const at = where % (value.length + 1)
      return { ...input, [name]: value.slice(0, at) + inserted.slice(0, 3) + value.slice(at + removed) }
    })
}

function replaceValue(): fc.Arbitrary<(input: Fields) => Fields> {
  return fc.tuple(fc.nat(), fc.anything()).map(([which, value]) => (input) => {
    const names = Object.keys(input)
    return { ...input, [names[which % names.length] ?? 'kind']: value }
  })
}

function dropField(): fc.Arbitrary<(input: Fields) => Fields> {
  return fc.nat().map((which) => (input) => {
    const names = Object.keys(input)
    const dropped = names[which % Math.max(1, names.length)]
    return Object.fromEntries(Object.entries(input).filter(([name]) => name !== dropped))
  })
}

function addField(): fc.Arbitrary<(input: Fields) => Fields> {
  const name = fc.oneof(
    fc.constantFrom(
      'exdates',
      'rdates',
      'start',
      'anchor',
      'every',
      'maxRuns',
      'dst',
      'at',
      '__proto__',
      'constructor',
    ),
    fc.string(),
  )
  return fc.tuple(name, fc.anything()).map(([added, value]) => (input) => ({ ...input, [added]: value }))
}
