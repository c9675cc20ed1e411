import fc from 'fast-check'
import { RRuleTemporal } from 'rrule-temporal'
import { describe, expect, test } from 'vitest'

import { parse } from '../src/index.ts'
import { anyRule, basic, type RuleAndStart } from './arbitrary/rrule-text.ts'
import { printAll, type Cadence } from './cadence-of.ts'
import { expand, readRule, type Expansion, type Freq } from './oracle/rrule-matcher.ts'
import { DAY, HOUR, MINUTE, printWall, SECOND } from './oracle/zone.ts'
import { PROPERTY_TIMEOUT, RUNS } from './runs.ts'

const LIMIT = 10
const HORIZON = 12 * 365 * DAY

describe('rrule in UTC, every part of RFC 5545', { timeout: PROPERTY_TIMEOUT }, () => {
  test('the brute-force matcher finds the same slots', () => {
    fc.assert(
      fc.property(anyRule(), (chosen) => {
        const expansion = expandInUtc(chosen)
        const cadence = buildInUtc(chosen, expansion)
        if (cadence === null) return

        expect(printAll(slotsOf(cadence, chosen, expansion))).toEqual(printAll(expansion.walls))
      }),
      { numRuns: RUNS },
    )
  })

  test('rrule-temporal, a second implementation, finds the same slots wherever it follows the RFC', () => {
    fc.assert(
      fc.property(anyRule(), (chosen) => {
        fc.pre(!isBeyondReference(chosen.rule))
        const expansion = expandInUtc(chosen)
        const cadence = buildInUtc(chosen, expansion)
        const expected = cadence === null ? null : referenceSlots(chosen, expansion.through)
        if (cadence === null || expected === null) return

        expect(printAll(slotsOf(cadence, chosen, expansion))).toEqual(printAll(expected))
      }),
      { numRuns: RUNS },
    )
  })
})

function expandInUtc({ rule, start }: RuleAndStart): Expansion {
  return expand(readRule(rule), start, start + HORIZON, LIMIT, 3_000)
}

/** A rejection is right only if the oracle also finds no slot in years, or must search far from one slot to the next. */
function buildInUtc(chosen: RuleAndStart, expansion: Expansion): Cadence | null {
  const input = { kind: 'rrule', rule: chosen.rule, start: printWall(chosen.start) }
  const parsed = parse(input, { minimumSeconds: 1 })
  if (parsed.ok) return parsed.cadence
  const codes = parsed.problems.map(({ code }) => code)
  if (codes.includes('too_complex') && isSparse(chosen, expansion)) return null
  expect({ codes, slots: printAll(expansion.walls) }).toEqual({ codes: ['never_fires'], slots: [] })
  return null
}

/** A distance between two slots that may exceed the budget: this many milliseconds, or this many periods of FREQ and INTERVAL. */
const FAR = 5 * 365 * DAY
const MANY_PERIODS = 1_000

const FINE_PERIODS = new Map<Freq, number>([
  ['HOURLY', HOUR],
  ['MINUTELY', MINUTE],
  ['SECONDLY', SECOND],
])

function isSparse({ rule, start }: RuleAndStart, { walls, through }: Expansion): boolean {
  const { freq, interval } = readRule(rule)
  const reach = Math.min(FAR, MANY_PERIODS * interval * (FINE_PERIODS.get(freq) ?? Infinity))
  return [...walls, through].some((at, index) => at - (walls[index - 1] ?? start) > reach)
}

function slotsOf(cadence: Cadence, { start }: RuleAndStart, { through }: Expansion): number[] {
  return cadence.slots(start, { to: through, limit: LIMIT })
}

/** Null if rrule-temporal stops at its own limit of iterations. */
function referenceSlots({ rule, start }: RuleAndStart, through: number): number[] | null {
  const reference = new RRuleTemporal({ rruleString: `DTSTART:${basic(start)}Z\nRRULE:${rule}` })
  try {
    const found = reference.between(new Date(start), new Date(through - 1), true)
    return found.slice(0, LIMIT).map(({ epochMilliseconds }) => epochMilliseconds)
  } catch (error) {
    if (error instanceof Error && error.message.includes('Maximum iterations')) return null
    throw error
  }
}

/**
 * True where rrule-temporal 2.2.7 differs from the RFC, in YEARLY rules only. It unites two parts that name days where the table in section
 * 3.3.10 states that the second one limits. It drops `TH` from `TH,-12TU`. It moves a 53rd weekday that the year lacks into the next year.
 * It assigns the days of a week that spans two years to the week's year, while this package assigns each day to its own year. That shows if
 * years are skipped or counted, and in the first days of the first year.
 */
function isBeyondReference(rule: string): boolean {
  if (!rule.startsWith('FREQ=YEARLY')) return false
  const dayParts = ['BYWEEKNO', 'BYYEARDAY', 'BYMONTHDAY', 'BYDAY'].filter((part) => rule.includes(part))
  const days = /BYDAY=([^;]*)/.exec(rule)?.[1]?.split(',') ?? []
  const isMixed = days.some((day) => day.length > 2) && days.some((day) => day.length === 2)
  const isSplitWeek =
    /BYWEEKNO=.*(INTERVAL|BYSETPOS)|(INTERVAL|BYSETPOS).*BYWEEKNO=|BYWEEKNO=[^;]*(52|53|-1\b|-2\b)/.test(rule)
  return dayParts.length > 1 || isMixed || isSplitWeek || days.some((day) => day.includes('53'))
}
