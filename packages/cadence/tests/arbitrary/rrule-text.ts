import fc from 'fast-check'

import { DAY, printWall, SECOND } from '../oracle/zone.ts'

export interface RuleAndStart {
  readonly rule: string
  /** DTSTART as a wall time, encoded as in oracle/zone.ts. */
  readonly start: number
}

type Freq = 'YEARLY' | 'MONTHLY' | 'WEEKLY' | 'DAILY' | 'HOURLY' | 'MINUTELY' | 'SECONDLY'
type Part = fc.Arbitrary<string | undefined>

const WEEKDAYS = ['MO', 'TU', 'WE', 'TH', 'FR', 'SA', 'SU']

/** Any rule that RFC 5545 allows, without COUNT and UNTIL. Some have no slot. */
function openRule(): fc.Arbitrary<RuleAndStart> {
  return freq().chain((chosen) => fc.record({ rule: ruleOf(chosen), start: startWall() }))
}

/** Like `openRule`, but half of the rules have COUNT or UNTIL. */
export function anyRule(): fc.Arbitrary<RuleAndStart> {
  return fc.tuple(openRule(), end()).map(([{ rule, start }, ending]) => ({ rule: rule + ending(start), start }))
}

function startWall(): fc.Arbitrary<number> {
  const second = fc.integer({ min: Date.UTC(2008, 0, 1) / SECOND, max: Date.UTC(2036, 0, 1) / SECOND })
  return fc.oneof(
    second.map((at) => at * SECOND),
    second.map((at) => Math.floor(at / 900) * 900 * SECOND),
  )
}

function freq(): fc.Arbitrary<Freq> {
  return fc.oneof(
    { weight: 4, arbitrary: fc.constant<Freq>('YEARLY') },
    { weight: 4, arbitrary: fc.constant<Freq>('MONTHLY') },
    { weight: 2, arbitrary: fc.constant<Freq>('WEEKLY') },
    { weight: 2, arbitrary: fc.constant<Freq>('DAILY') },
    { weight: 2, arbitrary: fc.constantFrom<Freq>('HOURLY', 'MINUTELY', 'SECONDLY') },
  )
}

function ruleOf(chosen: Freq): fc.Arbitrary<string> {
  const isFine = chosen === 'HOURLY' || chosen === 'MINUTELY' || chosen === 'SECONDLY'
  const hasOrdinals = chosen === 'MONTHLY' || chosen === 'YEARLY'
  const weekNumbers = chosen === 'YEARLY' ? sometimes('BYWEEKNO', signed(53)) : never()
  return weekNumbers
    .chain((byWeekNumber) =>
      fc.tuple(
        fc.constant<string | undefined>(`FREQ=${chosen}`),
        interval(chosen),
        sometimes('BYMONTH', fc.integer({ min: 1, max: 12 }).map(String)),
        fc.constant(byWeekNumber),
        chosen === 'YEARLY' || isFine ? sometimes('BYYEARDAY', signed(366)) : never(),
        chosen === 'WEEKLY' ? never() : sometimes('BYMONTHDAY', signed(31)),
        often('BYDAY', byDay(chosen, hasOrdinals && byWeekNumber === undefined)),
        sometimes('BYHOUR', fc.integer({ min: 0, max: 23 }).map(String)),
        sometimes('BYMINUTE', fc.integer({ min: 0, max: 59 }).map(String)),
        sometimes('BYSECOND', fc.integer({ min: 0, max: 59 }).map(String)),
        sometimes('BYSETPOS', fc.constantFrom('1', '2', '3', '-1', '-2', '7', '-10')),
        sometimes('WKST', fc.constantFrom(...WEEKDAYS), 1),
      ),
    )
    .map((parts) => dropLonelyPosition(parts.filter((part) => part !== undefined)).join(';'))
}

function interval(chosen: Freq): Part {
  const highest = { YEARLY: 5, MONTHLY: 15, WEEKLY: 7, DAILY: 40, HOURLY: 30, MINUTELY: 200, SECONDLY: 4_000 }[chosen]
  return fc.oneof(
    never(),
    fc.integer({ min: 1, max: highest }).map((steps) => `INTERVAL=${steps}`),
  )
}

function byDay(chosen: Freq, hasOrdinals: boolean): fc.Arbitrary<string> {
  const weekday = fc.constantFrom(...WEEKDAYS)
  if (!hasOrdinals) return weekday
  const ordinal = signed(chosen === 'YEARLY' ? 53 : 5)
  const small = fc.constantFrom('1', '2', '-1', '+3')
  return fc.oneof(
    weekday,
    fc.tuple(fc.oneof(ordinal, small), weekday).map((parts) => parts.join('')),
  )
}

/** BYSETPOS "MUST only be used in conjunction with another BYxxx rule part". */
function dropLonelyPosition(parts: string[]): string[] {
  const others = parts.filter((part) => part.startsWith('BY') && !part.startsWith('BYSETPOS'))
  return others.length > 0 ? parts : parts.filter((part) => !part.startsWith('BYSETPOS'))
}

function end(): fc.Arbitrary<(start: number) => string> {
  const count = fc.integer({ min: 1, max: 30 }).map((times) => () => `;COUNT=${times}`)
  const days = fc.integer({ min: 0, max: 3_000 })
  const until = days.map((away) => (start: number) => `;UNTIL=${basic(start + away * DAY)}Z`)
  const untilDate = days.map((away) => (start: number) => `;UNTIL=${basic(start + away * DAY).slice(0, 8)}`)
  return fc.oneof({ weight: 2, arbitrary: fc.constant(() => '') }, { weight: 1, arbitrary: count }, until, untilDate)
}

/** A wall time as iCalendar writes it, such as `20270314T030000`. */
export function basic(wall: number): string {
  return printWall(wall).replaceAll(/[-:]/g, '')
}

function signed(highest: number): fc.Arbitrary<string> {
  return fc
    .tuple(fc.integer({ min: 1, max: highest }), fc.boolean())
    .map(([value, isFromEnd]) => (isFromEnd ? `-${value}` : `${value}`))
}

function never(): Part {
  return fc.constant(undefined)
}

function sometimes(name: string, value: fc.Arbitrary<string>, maxLength = 4): Part {
  return fc.oneof({ weight: 4, arbitrary: never() }, { weight: 1, arbitrary: list(name, value, maxLength) })
}

function often(name: string, value: fc.Arbitrary<string>): Part {
  return fc.oneof(never(), list(name, value, 4))
}

function list(name: string, value: fc.Arbitrary<string>, maxLength: number): fc.Arbitrary<string> {
  return fc.uniqueArray(value, { minLength: 1, maxLength }).map((values) => `${name}=${values.join(',')}`)
}

/** A rule with at least one slot a week, mostly in the small hours, when DST changes. */
export function frequentRule(): fc.Arbitrary<string> {
  const hours = fc.uniqueArray(fc.integer({ min: 0, max: 4 }), { minLength: 1, maxLength: 4 })
  const minutes = fc.uniqueArray(fc.constantFrom(0, 1, 15, 29, 30, 45, 59), { minLength: 1, maxLength: 3 })
  const days = fc.constantFrom(
    'FREQ=DAILY',
    'FREQ=WEEKLY;BYDAY=SU,TH,FR,SA',
    'FREQ=MONTHLY;BYDAY=SU,FR',
    'FREQ=YEARLY;BYMONTH=3,4,9,10,11,12;BYDAY=SU,SA,FR',
  )
  const position = fc.constantFrom('', '', ';BYSETPOS=1', ';BYSETPOS=-1,2')
  const timed = fc
    .tuple(days, hours, minutes, position)
    .map(([day, hour, minute, picked]) => `${day};BYHOUR=${hour.join(',')};BYMINUTE=${minute.join(',')}${picked}`)
  const hourly = fc.integer({ min: 1, max: 9 }).map((steps) => `FREQ=HOURLY;INTERVAL=${steps}`)
  const minutely = fc.integer({ min: 5, max: 200 }).map((steps) => `FREQ=MINUTELY;INTERVAL=${steps}`)
  return fc.oneof(
    { weight: 3, arbitrary: timed },
    hourly,
    minutely,
    fc.constantFrom('FREQ=DAILY', 'FREQ=DAILY;INTERVAL=2', 'FREQ=WEEKLY'),
  )
}
