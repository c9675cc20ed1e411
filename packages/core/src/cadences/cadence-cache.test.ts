import type { CadenceSpec } from '@carillon/cadence'
import { describe, expect, test, vi } from 'vitest'

import { CadenceCache, describeCadence, readCadence } from './cadence-cache.ts'

const HOUR = 3_600_000
const DAY = 24 * HOUR
const START = Date.parse('2026-11-14T00:00:00Z')
const RETRY = { maxAttempts: 1, baseSeconds: 1, capSeconds: 1 }
const cronSpec = (expression: string): CadenceSpec => ({ kind: 'cron', expression, timezone: 'UTC' })
const cron = (expression: string): string => JSON.stringify(cronSpec(expression))

/** The slots of a cadence without the cache, one after the other. */
function slotsOf(text: string, from: number, to: number): number[] {
  const cadence = readCadence(JSON.parse(text))
  const slots: number[] = []
  for (let slot = cadence.next(from - 1); slot !== null && slot <= to; slot = cadence.next(slot)) slots.push(slot)
  return slots
}

describe('slots between two instants', () => {
  test.each([
    ['every minute', '* * * * *', START + 7, START + 2 * DAY],
    ['daily', '30 5 * * *', START, START + 40 * DAY],
    ['at the edges of the cached spans', '*/30 * * * *', START, START + 3 * DAY],
    ['once a year', '0 0 1 1 *', START, START + 90 * DAY],
  ])('all slots of a cadence are found, once each: %s', (_what, expression, from, to) => {
    const cadences = new CadenceCache()
    const range = { from, to, limit: 10_000 }

    const expected = slotsOf(cron(expression), from, to)
    expect(cadences.slotsBetween(cron(expression), range).slots).toEqual(expected)
    // A second time, from the cache.
    expect(cadences.slotsBetween(cron(expression), range).slots).toEqual(expected)
  })

  test('no more slots than the limit are found, and the next one is returned', () => {
    const cadences = new CadenceCache()

    const { slots, next } = cadences.slotsBetween(cron('0 * * * *'), { from: START, to: START + DAY, limit: 8 })

    expect(slots).toEqual(slotsOf(cron('0 * * * *'), START, START + 7 * HOUR))
    expect(next).toBe(START + 8 * HOUR)
  })

  test('a cadence that ends has no next slot', () => {
    const once = JSON.stringify({ kind: 'once', at: '2026-11-14T12:00:00Z' })

    const found = new CadenceCache().slotsBetween(once, { from: START, to: START + DAY, limit: 10 })

    expect(found).toEqual({ slots: [START + 12 * HOUR], next: null })
  })
})

describe('the cache', () => {
  test('parses a stored cadence and a stored policy once', () => {
    const cadences = new CadenceCache()
    const result = cadences.parsePolicyInput(undefined, { cadenceKind: 'cron', policy: { retry: RETRY } })
    const policy = result.ok ? result.policy.json : ''

    expect(cadences.read(cron('0 9 * * *'))).toBe(cadences.read(cron('0 9 * * *')))
    expect(cadences.policy(policy)).toBe(cadences.policy(policy))
  })

  test('searches the next slot once for all schedules that ask between two slots', () => {
    const cadences = new CadenceCache()
    const hourly = cron('0 * * * *')
    const search = vi.spyOn(cadences.read(hourly).rule, 'next')

    const answers = [START, START + 1, START + HOUR - 1].map((after) => cadences.read(hourly).next(after))

    expect(answers).toEqual([START + HOUR, START + HOUR, START + HOUR])
    expect(search).toHaveBeenCalledTimes(1)
  })

  test.each([
    ['the next slot', START + HOUR, START + 2 * HOUR],
    ['an instant before that of the last search', START - 1, START],
  ])('searches the next slot again after %s', (_what, after, next) => {
    const cadence = new CadenceCache().read(cron('0 * * * *'))
    cadence.next(START)

    expect(cadence.next(after)).toBe(next)
  })

  test('shares one cadence and one policy between equal inputs', () => {
    const cadences = new CadenceCache()
    const parseCadence = () => cadences.parseInput(cronSpec('0 9 * * *'), { now: START, minimumSeconds: 60 })
    const parsePolicy = () =>
      cadences.parsePolicyInput({ overlap: 'allow' }, { cadenceKind: 'cron', policy: { retry: RETRY } })

    const [first, second] = [parseCadence(), parseCadence()]

    expect(first.ok && second.ok && first.cadence === second.cadence).toBe(true)
    const [one, two] = [parsePolicy(), parsePolicy()]
    expect(one.ok && two.ok && one.policy === two.policy).toBe(true)
  })
})

describe('the bounded cache', () => {
  const options = { now: START, minimumSeconds: 60 }
  const parse = (cadences: CadenceCache, spec: CadenceSpec) => {
    const result = cadences.parseInput(spec, options)
    if (!result.ok) throw new Error(JSON.stringify(result.problems))
    return result.cadence
  }
  const numbersTo = (end: number): string => Array.from({ length: end }, (_, n) => n).join(',')
  /** A cadence with one slot a day, picked from a list of 57,600 times. */
  const heavy = (n: number): CadenceSpec => ({
    kind: 'rrule',
    rule: `FREQ=DAILY;BYHOUR=${numbersTo(24)};BYMINUTE=${numbersTo(60)};BYSECOND=${numbersTo(40)};BYSETPOS=${n + 1}`,
    start: '2026-01-01T00:00:00',
    timezone: 'UTC',
  })

  test('keeps a hundred simple inputs, but not a hundred that list 57,600 times each', () => {
    const cadences = new CadenceCache()
    const simple = Array.from({ length: 100 }, (_, n) => cronSpec(`${n % 60} ${n % 24} * * *`))

    const firstSimple = simple.map((spec) => parse(cadences, spec))[0]
    expect(parse(cadences, simple[0] as CadenceSpec)).toBe(firstSimple)
    const firstHeavy = Array.from({ length: 100 }, (_, n) => parse(cadences, heavy(n)))[0]

    expect(parse(cadences, heavy(0))).not.toBe(firstHeavy)
  })

  test('never evicts a stored cadence because of inputs', () => {
    const cadences = new CadenceCache()
    const stored = cadences.read(cron('0 9 * * *'))

    for (let n = 0; n < 200; n += 1) parse(cadences, heavy(n))

    expect(cadences.read(cron('0 9 * * *'))).toBe(stored)
  })
})

describe('the cache does not share', () => {
  test('an input between different minimum intervals', () => {
    const cadences = new CadenceCache()
    const everyMinute = cronSpec('* * * * *')

    expect(cadences.parseInput(everyMinute, { now: START, minimumSeconds: 60 }).ok).toBe(true)
    expect(cadences.parseInput(everyMinute, { now: START, minimumSeconds: 3600 }).ok).toBe(false)
    expect(cadences.parseInput(everyMinute, { now: START, minimumSeconds: 60 }).ok).toBe(true)
  })

  test('an interval without a start, which begins at the instant of its own request', () => {
    const cadences = new CadenceCache()
    const hourly = { kind: 'interval', every: 'PT1H', timezone: 'UTC' }

    const firstSlots = [START, START + 7000].map((now) => {
      const result = cadences.parseInput(hourly, { now, minimumSeconds: 60 })
      return result.ok ? result.cadence.next(now) : null
    })

    expect(new Set(firstSlots).size).toBe(2)
  })

  test('an input whose toJSON differs from its fields', () => {
    const cadences = new CadenceCache()
    const options = { now: START, minimumSeconds: 60 }
    class Cron {
      readonly kind = 'cron'
      readonly expression = '0 9 * * *'
      readonly timezone = 'UTC'
      toJSON(): unknown {
        return cronSpec('0 10 * * *')
      }
    }
    cadences.parseInput(cronSpec('0 10 * * *'), options)

    const result = cadences.parseInput(new Cron(), options)

    expect(result.ok ? result.cadence.rule.spec : undefined).not.toEqual(cronSpec('0 10 * * *'))
  })
})

test.each<[spec: CadenceSpec, words: string]>([
  [
    { kind: 'cron', expression: '0 9 * * 1-5', timezone: 'Europe/Madrid' },
    'At 09:00 on Monday through Friday, in Europe/Madrid',
  ],
  // This interval is shorter than any input may be today, but a stored cadence is still described.
  [{ kind: 'interval', every: 'PT1S', timezone: 'UTC', startAt: '2026-03-02T09:00:00Z' }, 'Every second'],
])('a stored cadence is described in plain English: %j', (spec, words) => {
  expect(describeCadence(spec)).toContain(words)
})

test.each<[what: string, spec: unknown]>([
  ['a kind of a later version', { kind: 'moon', phase: 'full' }],
  ['a zone that does not exist', { kind: 'cron', expression: '0 9 * * *', timezone: 'Mars/Olympus' }],
  ['nothing', null],
  ['a string', 'daily'],
])('a stored cadence that cannot be read is described as such: %s', (_what, spec) => {
  expect(describeCadence(spec as CadenceSpec)).toBe('A cadence that this version cannot read')
})
