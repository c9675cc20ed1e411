import { Cron } from 'croner'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'

import { cronExpression, frequentCronExpression } from './arbitrary/cron-expression.ts'
import { anyInstant, zoneAndInstant } from './arbitrary/zone-and-instant.ts'
import { cadenceOf, cadenceUnlessNever, printAll } from './cadence-of.ts'
import { DAY, HOUR, zone } from './oracle/zone.ts'
import { PROPERTY_TIMEOUT, RUNS } from './runs.ts'

/** A second implementation, which shares no code with the library: croner 11. */
describe('cron, against croner', { timeout: PROPERTY_TIMEOUT }, () => {
  test('in UTC croner finds the same next slots for every syntax', () => {
    fc.assert(
      fc.property(cronExpression(), anyInstant(), (expression, instant) => {
        const cadence = cadenceUnlessNever({ kind: 'cron', expression })
        const expected = runs(reference(expression, 'UTC'), instant, Infinity, 5)
        const to = (expected.at(-1) ?? instant) + 1

        const slots = cadence?.slots(instant + 1, { to, limit: 10_000 }) ?? []

        expect(printAll(slots.filter(isSeenByCroner))).toEqual(printAll(expected.filter(isSeenByCroner)))
      }),
      { numRuns: RUNS },
    )
  })

  test('in a zone croner finds the same slots in six hours, wherever both follow the same policy', () => {
    fc.assert(
      fc.property(frequentCronExpression(), zoneAndInstant(), (expression, { timezone, instant }) => {
        const cadence = cadenceOf({ kind: 'cron', expression, timezone })
        fc.pre(`${cadence.dst?.gap} ${cadence.dst?.fold}` === policyOfCroner(expression))
        const to = instant + 6 * HOUR
        fc.pre(!hasGapAcrossMidnight(timezone, instant, to))
        const expected = runs(reference(expression, timezone), instant, to, 10_000)

        expect(printAll(cadence.slots(instant + 1, { to, limit: 10_000 }))).toEqual(printAll(expected))
      }),
      { numRuns: RUNS },
    )
  })
})

/** croner counts a step over a star as a restriction, Vixie cron does not. So the test tells croner which rule to use. */
function reference(expression: string, timezone: string): Cron {
  const [, , dayOfMonth = '*', , dayOfWeek = '*'] = expression.split(' ')
  const domAndDow = dayOfMonth.startsWith('*') || dayOfWeek.startsWith('*')
  return new Cron(expression, { timezone, domAndDow, mode: '5-part' })
}

/**
 * croner treats an expression as fixed if minute and hour are single numbers, and as an interval otherwise. This package
 * looks at the times themselves, so `0 2,4 * * *` is fixed too, and it has a third class in between.
 */
function policyOfCroner(expression: string): string {
  return /^\d+ \d+ /.test(expression) ? 'shift first' : 'skip both'
}

/** If an expression names the 30th or 31st, croner misses the first days of March after a February without them. */
function isSeenByCroner(slot: number): boolean {
  return !/-03-0[12]T/.test(new Date(slot).toISOString())
}

/** croner drops a time in a gap that ends on another day: 30 December 2011 in Apia, 23:30 on 4 May 2018 in Pyongyang. */
function hasGapAcrossMidnight(timezone: string, from: number, to: number): boolean {
  return zone(timezone)
    .transitions(from, to)
    .some(({ at, before, after }) => Math.floor((at + before) / DAY) < Math.floor((at + after) / DAY))
}

function runs(cron: Cron, after: number, before: number, limit: number): number[] {
  const found: number[] = []
  let run = cron.nextRun(new Date(after))
  while (run !== null && run.getTime() < before && found.length < limit) {
    found.push(run.getTime())
    run = cron.nextRun(run)
  }
  return found
}
