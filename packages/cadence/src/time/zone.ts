import { DAY_MS, MINUTE_MS, SECOND_MS, dateOf, dayNumberOf, dayOf } from './wall-time.ts'
import { canonicalZoneName } from './zone-names.ts'

/** A span in which a zone's offset is constant: `start <= instant < end`. */
export interface Segment {
  readonly start: number
  readonly end: number
  /** Wall time minus instant, in milliseconds. */
  readonly offset: number
}

// The distance between two reads of a zone's offset. Since 1970 every zone has kept each offset for at least 7 days, so no
// change is missed.
const PROBE_MS = 5 * DAY_MS
const CACHED_YEARS_MAX = 400

/** Search steps charged for reading one year of a zone from `Intl`. */
export const STEPS_PER_ZONE_YEAR = 3000

// A cached zone year starts on 20 November. No zone has changed its clocks within three days of that date since 1970, and
// none will under today's rules. A fold that spans the start of a zone year would not be recognised.
const YEAR_START_MONTH = 11
const YEAR_START_DAY = 20

/**
 * A time zone as a sequence of segments with constant offset. Segments are read from `Intl` and cached by zone year. A
 * segment also ends where a zone year ends, so neighbouring segments may have the same offset. Reading a year costs the
 * same for every zone.
 */
export class Zone {
  readonly name: string
  readonly #format: Intl.DateTimeFormat
  readonly #segmentsByYear = new Map<number, readonly Segment[]>()
  #latest: Segment = { start: 0, end: 0, offset: 0 }

  /** @throws RangeError if this JavaScript engine does not know the zone */
  constructor(name: string) {
    this.name = name
    // A format must show part of the date, so it shows the year. The offset comes last: "2026, GMT-05:00".
    this.#format = new Intl.DateTimeFormat('en-US', { timeZone: name, year: 'numeric', timeZoneName: 'longOffset' })
    if (name === 'UTC') this.#latest = { start: -Infinity, end: Infinity, offset: 0 }
  }

  segmentAt(instant: number): Segment {
    const latest = this.#latest
    if (latest.start <= instant && instant < latest.end) return latest
    const year = zoneYearOf(instant)
    let segments = this.#segmentsByYear.get(year)
    if (segments === undefined) {
      segments = this.#readYear(year)
      // The cache is bounded: a search over many centuries must not keep their segments in memory.
      if (this.#segmentsByYear.size >= CACHED_YEARS_MAX) this.#segmentsByYear.clear()
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
    const yearEnd = yearStartOf(year + 1)
    let start = yearStartOf(year)
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

  /** The first whole second at which the offset differs from the one at `low`, by bisection. */
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
    // `Intl` shows UTC as "GMT" without an offset.
    if (sign === text.length) return 0
    const hours = Number(text.slice(sign + 1, sign + 3))
    const minutes = Number(text.slice(sign + 4, sign + 6))
    const seconds = Number(text.slice(sign + 7, sign + 9))
    const size = (hours * 60 + minutes) * MINUTE_MS + seconds * SECOND_MS
    return text[sign] === '-' ? -size : size
  }
}

/** The zone year an instant lies in. Zone year 2026 starts on 20 November 2026. */
function zoneYearOf(instant: number): number {
  const { year } = dateOf(dayOf(instant))
  return instant < yearStartOf(year) ? year - 1 : year
}

function yearStartOf(year: number): number {
  return dayNumberOf(year, YEAR_START_MONTH, YEAR_START_DAY) * DAY_MS
}

const ZONES = new Map<string, Zone>()

/** Finds a zone by any of its IANA names, in any letter case. Undefined for offsets (`+05:30`) and unknown names. */
export function findZone(name: string): Zone | undefined {
  const canonical = canonicalZoneName(name)
  if (canonical === undefined) return undefined
  const known = ZONES.get(canonical)
  if (known !== undefined) return known
  const zone = createZone(canonical)
  if (zone !== undefined) ZONES.set(canonical, zone)
  return zone
}

/** Undefined if this JavaScript engine is older than the zone. */
function createZone(name: string): Zone | undefined {
  try {
    return new Zone(name)
  } catch (error) {
    if (error instanceof RangeError) return undefined
    throw error
  }
}

export const UTC = new Zone('UTC')
ZONES.set('UTC', UTC)
