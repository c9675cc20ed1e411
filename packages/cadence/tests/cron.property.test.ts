import fc from 'fast-check'
import { describe, expect, test } from 'vitest'

import { cronExpression, frequentCronExpression } from './arbitrary/cron-expression.ts'
import { partialPolicy } from './arbitrary/policy.ts'
import { zoneAndInstant, type ZoneAndInstant } from './arbitrary/zone-and-instant.ts'
import { cadenceUnlessNever, printAll, type Cadence } from './cadence-of.ts'
import { CronMatcher } from './oracle/cron-matcher.ts'
import type { Policy } from './oracle/dst.ts'
import { DAY, zone } from './oracle/zone.ts'
import { PROPERTY_TIMEOUT, RUNS } from './runs.ts'

/** Slots are compared from this instant on. */
const EARLIEST = Date.UTC(1970, 0, 2)

interface Case extends ZoneAndInstant {
  readonly expression: string
  readonly dst: Partial<Policy>
}

function cases(expression: fc.Arbitrary<string>): fc.Arbitrary<Case> {
  return fc
    .record({ expression, place: zoneAndInstant(), dst: partialPolicy() })
    .map(({ place, ...rest }) => ({ ...place, ...rest }))
}

/** Null if the expression names a date that never exists. The oracle confirms that. */
function build({ expression, timezone, dst }: Case): { cadence: Cadence; matcher: CronMatcher } | null {
  const matcher = new CronMatcher(expression, zone(timezone), dst)
  const cadence = cadenceUnlessNever({ kind: 'cron', expression, timezone, dst })
  if (cadence !== null) return { cadence, matcher }
  expect(matcher.canFire(), `${expression} can fire`).toBe(false)
  return null
}

function check(
  expression: fc.Arbitrary<string>,
  property: (cadence: Cadence, matcher: CronMatcher, instant: number) => void,
): void {
  fc.assert(
    fc.property(cases(expression), (chosen) => {
      const built = build(chosen)
      if (built !== null) property(built.cadence, built.matcher, chosen.instant)
    }),
    { numRuns: RUNS },
  )
}

describe('cron, against a matcher that looks at one minute at a time', { timeout: PROPERTY_TIMEOUT }, () => {
  test('the next slot lies after the given instant, and the matcher accepts it', () => {
    check(cronExpression(), (cadence, matcher, instant) => {
      const next = cadence.next(instant) ?? Number.NaN

      expect(next).toBeGreaterThan(instant)
      expect(matcher.isSlot(next), matcherRejects(next)).toBe(true)
    })
  })

  test('the matcher accepts no minute between an instant and its next slot', () => {
    check(cronExpression(), (cadence, matcher, instant) => {
      const next = cadence.next(instant) ?? Infinity

      expect(printAll([matcher.firstSlot(instant, next)])).toEqual(['none'])
    })
  })

  test('the matcher accepts no minute between an instant and its previous slot', () => {
    check(cronExpression(), (cadence, matcher, instant) => {
      const previous = cadence.previous(instant)

      if (previous !== null) expect(previous).toBeLessThan(instant)
      if (previous !== null) expect(matcher.isSlot(previous), matcherRejects(previous)).toBe(true)
      expect(printAll([matcher.firstSlot(previous ?? EARLIEST - 1, instant)])).toEqual(['none'])
    })
  })

  test('next and previous are inverse, slot by slot', () => {
    check(cronExpression(), (cadence, _matcher, instant) => {
      const next = cadence.next(instant) ?? Number.NaN
      const afterNext = cadence.next(next) ?? Number.NaN
      const previous = cadence.previous(instant)

      expect(cadence.previous(afterNext)).toBe(next)
      expect(cadence.previous(next) ?? -Infinity).toBeLessThanOrEqual(instant)
      if (previous !== null) expect(cadence.next(previous)).toBeGreaterThanOrEqual(instant)
      expect(cadence.previous(next + 1)).toBe(next)
      expect(cadence.next(next - 1)).toBe(next)
    })
  })

  test('a restart at any instant before the next slot finds the same slot', () => {
    fc.assert(
      fc.property(cases(cronExpression()), fc.double({ min: 0, max: 1, noNaN: true }), (chosen, share) => {
        const cadence = build(chosen)?.cadence
        if (cadence === undefined) return
        const next = cadence.next(chosen.instant) ?? Number.NaN
        const later = Math.min(next - 1, chosen.instant + Math.floor((next - chosen.instant) * share))

        expect(cadence.next(later)).toBe(next)
      }),
      { numRuns: RUNS },
    )
  })

  test('parsing the canonical form again, from JSON, gives the same cadence', () => {
    check(cronExpression(), (cadence, _matcher, instant) => {
      const again = cadenceUnlessNever(JSON.parse(JSON.stringify(cadence.spec)), { minimumSeconds: 0 })

      expect(again?.spec).toEqual(cadence.spec)
      expect(again?.dst).toEqual(cadence.dst)
      expect(again?.slots(instant, { limit: 5 })).toEqual(cadence.slots(instant, { limit: 5 }))
    })
  })

  test('the slots of two days are the minutes that the matcher accepts', () => {
    check(frequentCronExpression(), (cadence, matcher, instant) => {
      const to = instant + 2 * DAY

      expect(printAll(cadence.slots(instant, { to, limit: 10_000 }))).toEqual(printAll(matcher.slots(instant, to)))
    })
  })

  test('the policy in effect is the given one, with defaults for absent fields', () => {
    check(cronExpression(), (cadence, matcher) => {
      expect(cadence.dst).toEqual(matcher.policy)
    })
  })

  test('startAt, endAt and maxRuns limit the slots, both bounds inclusive', () => {
    const bounds = fc.record({
      head: fc.nat({ max: 4 }),
      length: fc.integer({ min: 1, max: 12 }),
      maxRuns: fc.option(fc.integer({ min: 1, max: 8 }), { nil: undefined }),
      isExact: fc.boolean(),
    })
    fc.assert(
      fc.property(cases(frequentCronExpression()), bounds, (chosen, { head, length, maxRuns, isExact }) => {
        const { expression, timezone, dst, instant } = chosen
        const matcher = new CronMatcher(expression, zone(timezone), dst)
        const all = matcher.slots(instant, instant + 3 * DAY).slice(0, head + length)
        const [first, last] = [all[head], all.at(-1)]
        if (first === undefined || last === undefined) return
        const startAt = first - (isExact ? 0 : 999)
        const endAt = last + (isExact ? 0 : 999)

        const cadence = cadenceUnlessNever({
          kind: 'cron',
          expression,
          timezone,
          dst,
          startAt: new Date(startAt).toISOString(),
          endAt: new Date(endAt).toISOString(),
          ...(maxRuns === undefined ? {} : { maxRuns }),
        })

        const expected = all.filter((slot) => slot >= startAt).slice(0, maxRuns)
        expect(printAll(cadence?.slots(0) ?? [])).toEqual(printAll(expected))
        expect(cadence?.next(expected.at(-1) ?? 0)).toBeNull()
        expect(cadence?.isExhausted(expected.at(-1) ?? 0)).toBe(true)
        expect(cadence?.isExhausted((expected.at(-1) ?? 0) - 1)).toBe(false)
        expect(cadence?.previous(expected[0] ?? 0)).toBeNull()
        expect(cadence?.previous(Date.UTC(2100, 0, 1))).toBe(expected.at(-1))
      }),
      { numRuns: RUNS },
    )
  })
})

function matcherRejects(slot: number): string {
  return `the matcher rejects ${Number.isNaN(slot) ? 'no slot at all' : new Date(slot).toISOString()}`
}
