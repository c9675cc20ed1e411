import { Temporal } from 'temporal-polyfill'
import { expect, test } from 'vitest'

import { canonicalZoneName } from './zone-names.ts'
import { findZone } from './zone.ts'

const FROM = Date.UTC(1970, 0, 1)
const TO = Date.UTC(2040, 0, 1)
const DAY_MS = 86_400_000

/** Where the segments of a zone end: at a transition, or at the start of a zone year. */
function ourEdges(name: string): { transitions: number[]; yearStarts: number[] } {
  const zone = findZone(name)
  if (zone === undefined) throw new Error(`no zone ${name}`)
  const transitions: number[] = []
  const yearStarts: number[] = []
  for (let segment = zone.segmentAt(FROM); segment.end < TO;) {
    const next = zone.segmentAt(segment.end)
    const edges = next.offset === segment.offset ? yearStarts : transitions
    edges.push(next.start)
    segment = next
  }
  return { transitions, yearStarts }
}

function theirTransitions(name: string): number[] {
  const transitions: number[] = []
  let moment: Temporal.ZonedDateTime | null = Temporal.Instant.fromEpochMilliseconds(FROM).toZonedDateTimeISO(name)
  for (;;) {
    moment = moment.getTimeZoneTransition('next')
    if (moment === null || moment.epochMilliseconds >= TO) return transitions
    transitions.push(moment.epochMilliseconds)
  }
}

const ZONES = Intl.supportedValuesOf('timeZone')

test('every zone has the same transitions as in temporal-polyfill from 1970 to 2040', { timeout: 120_000 }, () => {
  for (const name of ZONES) expect([name, ourEdges(name).transitions]).toEqual([name, theirTransitions(name)])
})

test('no zone has a transition within three days of the start of a zone year', { timeout: 60_000 }, () => {
  for (const name of ZONES.filter((zone) => zone !== 'UTC')) {
    const { transitions, yearStarts } = ourEdges(name)
    const near = transitions.filter((at) => yearStarts.some((start) => Math.abs(at - start) <= 3 * DAY_MS))

    expect([name, near]).toEqual([name, []])
    // A transition exactly at the start of a zone year would remove that start from the list.
    expect([name, yearStarts.length]).toEqual([name, 70])
  }
})

test.each([
  ['asia/calcutta', 'Asia/Kolkata'],
  ['Europe/Kiev', 'Europe/Kyiv'],
  ['US/Eastern', 'America/New_York'],
  ['EST', 'America/Panama'],
  ['GMT', 'UTC'],
  ['Etc/UTC', 'UTC'],
  ['zulu', 'UTC'],
  ['etc/gmt+5', 'Etc/GMT+5'],
  ['america/port-au-prince', 'America/Port-au-Prince'],
  ['Europe/Oslo', 'Europe/Oslo'],
])('the current name of the zone %s is %s', (given, current) => {
  expect(canonicalZoneName(given)).toBe(current)
})

test.each(['+05:30', 'GMT+5', 'Etc/GMT+15', 'Mars/Olympus', '../etc', '', 'ACT', 'SystemV/AST4', 'Factory', 'Local'])(
  '%o is not accepted as a zone',
  (name) => {
    expect(findZone(name)).toBeUndefined()
  },
)
