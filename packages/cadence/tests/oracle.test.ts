import fc from 'fast-check'
import { describe, expect, test } from 'vitest'

import { zoneAndInstant } from './arbitrary/zone-and-instant.ts'
import { resolve, type Policy } from './oracle/dst.ts'
import { wall, zone } from './oracle/zone.ts'
import { PROPERTY_TIMEOUT, RUNS } from './runs.ts'

/** Tests the oracle itself against Intl and against known facts. */
describe('the oracle', { timeout: PROPERTY_TIMEOUT }, () => {
  test('has a table of transitions that gives the same wall times as Intl', () => {
    fc.assert(
      fc.property(zoneAndInstant(), ({ timezone, instant }) => {
        const place = zone(timezone)

        expect(place.wallAt(instant)).toBe(place.readWall(instant))
        expect(place.instantsOf(place.wallAt(instant))).toContain(instant)
      }),
      { numRuns: RUNS },
    )
  })

  test.each([
    { timezone: 'America/New_York', local: '2027-03-14T02:30:00', instants: [] },
    { timezone: 'America/New_York', local: '2027-03-14T03:00:00', instants: ['2027-03-14T07:00:00.000Z'] },
    {
      timezone: 'America/New_York',
      local: '2027-11-07T01:00:00',
      instants: ['2027-11-07T05:00:00.000Z', '2027-11-07T06:00:00.000Z'],
    },
    { timezone: 'Australia/Lord_Howe', local: '2027-10-03T02:15:00', instants: [] },
    {
      timezone: 'Australia/Lord_Howe',
      local: '2027-04-04T01:45:00',
      instants: ['2027-04-03T14:45:00.000Z', '2027-04-03T15:15:00.000Z'],
    },
    { timezone: 'Pacific/Apia', local: '2011-12-30T12:00:00', instants: [] },
    { timezone: 'Africa/Cairo', local: '2027-04-30T00:30:00', instants: [] },
    { timezone: 'Antarctica/Troll', local: '2027-03-28T02:59:59', instants: [] },
    { timezone: 'Asia/Kathmandu', local: '2027-01-01T00:00:00', instants: ['2026-12-31T18:15:00.000Z'] },
  ])('finds $local in $timezone at $instants', ({ timezone, local, instants }) => {
    expect(
      zone(timezone)
        .instantsOf(wall(local))
        .map((instant) => new Date(instant).toISOString()),
    ).toEqual(instants)
  })

  test.each<{ policy: Policy; slots: string[] }>([
    { policy: { gap: 'shift', fold: 'first' }, slots: ['2027-03-14T07:00', '2027-11-07T05:30'] },
    { policy: { gap: 'skip', fold: 'second' }, slots: ['2027-11-07T06:30'] },
    { policy: { gap: 'shift', fold: 'both' }, slots: ['2027-03-14T07:00', '2027-11-07T05:30', '2027-11-07T06:30'] },
  ])('turns two times in a gap and one in a fold into $slots with the policy $policy', ({ policy, slots }) => {
    const walls = ['2027-03-14T02:10:00', '2027-03-14T02:50:00', '2027-11-07T01:30:00'].map(wall)

    const found = resolve(walls, zone('America/New_York'), policy)

    expect(found.map((slot) => new Date(slot).toISOString().slice(0, 16))).toEqual(slots)
  })
})
