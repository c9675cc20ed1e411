import { describe, expect, test } from 'vitest'

import { cadenceOf, printAll } from './cadence-of.ts'
import { CronMatcher } from './oracle/cron-matcher.ts'
import type { Policy } from './oracle/dst.ts'
import { DAY, HOUR, MINUTE, zone, type Zone } from './oracle/zone.ts'
import { GOLDEN_ZONES } from './oracle/zones.ts'

const PATTERNS = [
  '* * * * *',
  '*/15 * * * *',
  '*/7 1-3 * * *',
  '0 * * * *',
  '0 */2 * * *',
  '30 2 * * *',
  '0 3 * * *',
  '45 1,3 * * *',
  '10,50 2 * * SUN',
  '5 2 */2 * *',
]

/** The default policy, and every gap and fold policy at least once. */
const POLICIES: Partial<Policy>[] = [{}, { gap: 'shift', fold: 'both' }, { gap: 'skip', fold: 'second' }]

describe('every minute of the two days either side of a transition', { timeout: 60_000 }, () => {
  test.each(GOLDEN_ZONES)('%s fires in exactly the minutes that the matcher accepts', (name) => {
    const place = zone(name)

    for (const expression of [...PATTERNS, ...edges(place)]) for (const dst of POLICIES) sweep(place, expression, dst)
  })

  // Ensures that the sweep does not pass because it found no transitions.
  test.each([
    { name: 'America/New_York', count: 32 },
    { name: 'Australia/Lord_Howe', count: 32 },
    { name: 'Africa/Cairo', count: 26 },
    { name: 'Antarctica/Troll', count: 32 },
    { name: 'Asia/Kolkata', count: 0 },
  ])('$name has $count transitions to sweep from 2020 to 2035', ({ name, count }) => {
    expect(zone(name).transitions(Date.UTC(2020, 0, 1), Date.UTC(2036, 0, 1))).toHaveLength(count)
  })
})

function sweep(place: Zone, expression: string, dst: Partial<Policy>): void {
  const cadence = cadenceOf({ kind: 'cron', expression, timezone: place.name, dst })
  const matcher = new CronMatcher(expression, place, dst)
  for (const middle of moments(place)) {
    const [from, to] = [middle - 2 * DAY, middle + 2 * DAY]
    const expected = matcher.slots(from, to)
    const found = cadence.slots(from, { to, limit: 10_000 })
    if (found.join() === expected.join()) continue
    expect({ expression, dst, slots: printAll(found) }).toEqual({ expression, dst, slots: printAll(expected) })
  }
}

/** Daily expressions at the minutes in which each gap and fold begins and ends, and at the minutes just before. */
function edges(place: Zone): string[] {
  const found = new Set<string>()
  for (const instant of moments(place)) {
    for (const wall of [place.wallAt(instant - 1) + 1, place.wallAt(instant)]) {
      for (const minute of [wall, wall - MINUTE]) {
        found.add(`${Math.floor(minute / MINUTE) % 60} ${Math.floor(minute / HOUR) % 24} * * *`)
      }
    }
  }
  return [...found]
}

/** The transitions of 2020 to 2035 and the day that Samoa skipped. A zone without any is swept in spring and autumn. */
function moments(place: Zone): number[] {
  const transitions = [
    ...place.transitions(Date.UTC(2011, 11, 1), Date.UTC(2012, 0, 15)),
    ...place.transitions(Date.UTC(2020, 0, 1), Date.UTC(2036, 0, 1)),
  ]
  return transitions.length > 0 ? transitions.map(({ at }) => at) : [Date.UTC(2027, 2, 21), Date.UTC(2027, 8, 23)]
}

describe('a yearly local time in the hour that is repeated', () => {
  const yearly = cadenceOf({
    kind: 'rrule',
    rule: 'FREQ=YEARLY',
    start: '2026-11-01T01:30:00',
    timezone: 'America/New_York',
    dst: { fold: 'both' },
  })
  const first = Date.parse('2026-11-01T05:30:00Z')
  const second = Date.parse('2026-11-01T06:30:00Z')

  // W4 in slot-walk.ts: the rule's next wall time is a year ahead, but the fold repeats this one.
  test('is found again in the second pass, although the next wall time is a year ahead', () => {
    expect(yearly.next(first)).toBe(second)
    expect(yearly.next(first + 15 * 60_000)).toBe(second)
  })

  test('is found in the first pass by previous from before the second pass', () => {
    expect(yearly.previous(second)).toBe(first)
    expect(yearly.previous(second - 15 * 60_000)).toBe(first)
  })
})
