import { DAY_MS, MINUTE_MS, SECOND_MS, dateOf, dayNumberOf, dayOf } from './wall.ts'
import { canonicalZoneName } from './zone-names.ts'

/** A stretch of time in which a zone's offset does not change: `start <= instant < end`. */
export interface Segment {
  readonly start: number
  readonly end: number
  /** Wall time minus instant, in milliseconds. */
  readonly offset: number
}

// No zone has kept an offset for less than 7 days since 1970, so nothing hides between two probes.
const PROBE_MS = 5 * DAY_MS
const YEARS_KEPT = 400

/** What finding a year costs the first time, in steps of a search. */
export const STEPS_PER_ZONE_YEAR = 3000

// Years are cut where no zone's clocks have changed within three days since 1970, nor will by today's rules: a fold that
// reaches across the cut would not be seen as one.
const CUT_MONTH = 11
const CUT_DAY = 20

/**
 * A time zone as a row of segments, found by asking `Intl` for offsets and kept by the year. A segment also ends where a
 * year is cut, so neighbours may have the same offset. Finding a year costs the same, whatever the zone.
 */
export class Zone {
  readonly name: string
  readonly #format: Intl.DateTimeFormat
  readonly #segmentsByYear = new Map<number, readonly Segment[]>()
  #latest: Segment = { start: 0, end: 0, offset: 0 }

  /** @throws RangeError if the engine does not know the zone */
  constructor(name: string) {
    this.name = name
    // The year, because a format must show something of the date; the offset is at the end: "2026, GMT-05:00".
    this.#format = new Intl.DateTimeFormat('en-US', { timeZone: name, year: 'numeric', timeZoneName: 'longOffset' })
    if (name === 'UTC') this.#latest = { start: -Infinity, end: Infinity, offset: 0 }
  }

  segmentAt(instant: number): Segment {
    const latest = this.#latest
    if (latest.start <= instant && instant < latest.end) return latest
    const year = yearOf(instant)
    let segments = this.#segmentsByYear.get(year)
    if (segments === undefined) {
      segments = this.#readYear(year)
      // Bounded, so that walking a zone through the ages does not hold memory for ever.
      if (this.#segmentsByYear.size >= YEARS_KEPT) this.#segmentsByYear.clear()
      this.#segmentsByYear.set(year, segments)
    }
    this.#latest = segments.find(({ end }) => instant < end) ?? latest
    return this.#latest
  }

  offsetAt(instant: number): number {
    return this.segmentAt(instant).offset
  }

  #readYear(year: number): Segment[] {
    const segments: Segment[] = []
    const yearEnd = cutOf(year + 1)
    let start = cutOf(year)
    let offset = this.#readOffset(start)
    for (let probe = start; probe < yearEnd;) {
      const next = Math.min(probe + PROBE_MS, yearEnd)
      const nextOffset = this.#readOffset(next)
      if (nextOffset !== offset) {
        const end = this.#transitionBetween(probe, next, offset)
        segments.push({ start, end, offset })
        start = end
        offset = nextOffset
      }
      probe = next
    }
    return [...segments, { start, end: yearEnd, offset }]
  }

  /** The first whole second at which the offset is no longer what it was at `low`. */
  #transitionBetween(low: number, high: number, offset: number): number {
    let before = low
    let after = high
    while (after - before > SECOND_MS) {
      const middle = Math.floor((before + after) / 2 / SECOND_MS) * SECOND_MS
      if (this.#readOffset(middle) === offset) before = middle
      else after = middle
    }
    return after
  }

  #readOffset(instant: number): number {
    const text = this.#format.format(instant)
    const sign = text.indexOf('GMT') + 3
    // UTC itself shows as "GMT" alone.
    if (sign === text.length) return 0
    const hours = Number(text.slice(sign + 1, sign + 3))
    const minutes = Number(text.slice(sign + 4, sign + 6))
    const seconds = Number(text.slice(sign + 7, sign + 9))
    const size = (hours * 60 + minutes) * MINUTE_MS + seconds * SECOND_MS
    return text[sign] === '-' ? -size : size
  }
}

/** The year that begins at the cut in the calendar year of the same number. */
function yearOf(instant: number): number {
  const { year } = dateOf(dayOf(instant))
  return instant < cutOf(year) ? year - 1 : year
}

function cutOf(year: number): number {
  return dayNumberOf(year, CUT_MONTH, CUT_DAY) * DAY_MS
}

const ZONES = new Map<string, Zone>()

/** Finds a zone by any of its IANA names, in any case. Offsets (`+05:30`) and unknown names give undefined. */
export function findZone(name: string): Zone | undefined {
  const canonical = canonicalZoneName(name)
  if (canonical === undefined) return undefined
  const known = ZONES.get(canonical)
  if (known !== undefined) return known
  const zone = createZone(canonical)
  if (zone !== undefined) ZONES.set(canonical, zone)
  return zone
}

/** An older engine may lack a newer zone. */
function createZone(name: string): Zone | undefined {
  try {
    return new Zone(name)
  } catch (error) {
    if (error instanceof RangeError) return undefined
    throw error
  }
}

/** The zone without changes. */
export const UTC = new Zone('UTC')
ZONES.set('UTC', UTC)
