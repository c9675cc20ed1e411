import { expect, test } from 'vitest'

import { cadenceOf } from './cadence-of.ts'

/** The clocks in Madrid go forward on 29 March 2026. */
const AROUND = { startAt: '2026-03-28T09:00:00', timezone: 'Europe/Madrid' }

function localSlots(every: string | number): string[] {
  const cadence = cadenceOf({ kind: 'interval', every, ...AROUND })
  return cadence.slots(0, { limit: 3 }).map((slot) => cadence.local(slot))
}

test.each(['P1D', 'P1W', 'P1M', 'P1DT1H'])('an interval of %s keeps local time when the clocks change', (every) => {
  const cadence = cadenceOf({ kind: 'interval', every, ...AROUND })
  const inUtc = cadenceOf({ kind: 'interval', every, ...AROUND, timezone: 'UTC' })
  const wallTimes = (of: typeof cadence): string[] =>
    of.slots(0, { limit: 3 }).map((slot) => of.local(slot).slice(0, '2026-03-28T09:00:00'.length))

  expect(wallTimes(cadence)).toEqual(wallTimes(inUtc))
})

test.each(['PT24H', 86_400])('an interval of %s is 24 hours of elapsed time, so its time of day changes', (every) => {
  expect(localSlots(every)).toEqual([
    '2026-03-28T09:00:00+01:00[Europe/Madrid]',
    '2026-03-29T10:00:00+02:00[Europe/Madrid]',
    '2026-03-30T10:00:00+02:00[Europe/Madrid]',
  ])
})
