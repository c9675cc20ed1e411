import fc from 'fast-check'

import { DAY, MINUTE, zone } from '../oracle/zone.ts'
import { GOLDEN_ZONES, OTHER_ZONES } from '../oracle/zones.ts'

export interface ZoneAndInstant {
  readonly timezone: string
  readonly instant: number
}

const EARLIEST = Date.UTC(2008, 0, 1)
const LATEST = Date.UTC(2040, 0, 1)

/** A zone and an instant, mostly within two days of a transition of the zone. */
export function zoneAndInstant(): fc.Arbitrary<ZoneAndInstant> {
  return fc
    .constantFrom(...GOLDEN_ZONES, ...OTHER_ZONES)
    .chain((timezone) => fc.record({ timezone: fc.constant(timezone), instant: instantIn(timezone) }))
}

export function anyInstant(): fc.Arbitrary<number> {
  return fc.integer({ min: EARLIEST, max: LATEST })
}

function instantIn(timezone: string): fc.Arbitrary<number> {
  const transitions = zone(timezone).transitions(EARLIEST, LATEST)
  if (transitions.length === 0) return anyInstant()
  const near = fc
    .record({ transition: fc.constantFrom(...transitions), distance: distance() })
    .map(({ transition, distance: away }) => transition.at + away)
  return fc.oneof({ weight: 3, arbitrary: near }, { weight: 1, arbitrary: anyInstant() })
}

function distance(): fc.Arbitrary<number> {
  return fc.oneof(
    fc.constantFrom(-1, 0, 1),
    fc.integer({ min: -180, max: 180 }).map((minutes) => minutes * MINUTE),
    fc.integer({ min: -2 * DAY, max: 2 * DAY }),
  )
}
