import { describe, expect, test } from 'vitest'

import { cadenceOf } from './cadence-of.ts'
import { expand, readRule } from './oracle/rrule-matcher.ts'
import { DAY, printWall, wall, zone } from './oracle/zone.ts'
import { RFC_EXAMPLES } from './vectors/rfc-5545.ts'

const NEW_YORK = zone('America/New_York')

describe('the examples of RFC 5545, section 3.8.5.3', () => {
  test.each(RFC_EXAMPLES)(
    'the example "$title" has the dates that the RFC lists',
    ({ rule, start, dates, isComplete }) => {
      const cadence = cadenceOf({ kind: 'rrule', rule, start: `${start}T09:00:00`, timezone: 'America/New_York' })

      const slots = cadence.slots(0, { limit: isComplete ? 1_000 : dates.length })

      expect(slots.map((slot) => printWall(NEW_YORK.wallAt(slot)))).toEqual(dates)
    },
  )

  test.each(RFC_EXAMPLES)(
    'the oracle finds the same dates for the example "$title"',
    ({ rule, start, dates, isComplete }) => {
      // UNTIL is an instant in these examples, but the oracle knows wall times only.
      const localRule = rule.replace(/UNTIL=(\d+T\d+)Z/, (_, until: string) => `UNTIL=${toLocal(until)}`)
      const from = wall(`${start}T09:00:00`)

      const { walls } = expand(readRule(localRule), from, from + 20 * 365 * DAY, isComplete ? 1_000 : dates.length)

      expect(walls.map(printWall)).toEqual(dates)
    },
  )
})

/** `19971224T000000` in UTC as local time in New York. */
function toLocal(basic: string): string {
  const [, year, month, day, hour, minute] = /^(\d{4})(\d\d)(\d\d)T(\d\d)(\d\d)/.exec(basic) ?? []
  const instant = wall(`${year}-${month}-${day}T${hour}:${minute}:00`)
  return printWall(NEW_YORK.wallAt(instant)).replaceAll(/[-:]/g, '')
}
