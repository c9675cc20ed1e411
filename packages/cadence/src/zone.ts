import { Temporal } from 'temporal-polyfill'

import { currentZoneName } from './zone-aliases.ts'

/** A stretch of time in which a zone's offset does not change: `start <= instant < end`. */
export interface Segment {
  readonly start: number
  readonly end: number
  /** Wall time minus instant, in milliseconds. */
  readonly offset: number
}

const ZONE_NAME_MAX_LENGTH = 64
const SEGMENTS_KEPT = 512

/** A time zone as a row of segments, computed when first asked for and kept. */
export class Zone {
  readonly name: string
  // Sorted by start, not necessarily contiguous: a look at the year 2400 does not compute the centuries before it.
  #segments: Segment[] = []
  #latest: Segment | undefined

  constructor(name: string) {
    this.name = name
  }

  segmentAt(instant: number): Segment {
    const latest = this.#latest
    if (latest !== undefined && latest.start <= instant && instant < latest.end) return latest
    const index = this.#indexAfter(instant)
    const known = this.#segments[index - 1]
    const segment = known !== undefined && instant < known.end ? known : this.#compute(instant, index)
    this.#latest = segment
    return segment
  }

  offsetAt(instant: number): number {
    return this.segmentAt(instant).offset
  }

  #indexAfter(instant: number): number {
    let low = 0
    let high = this.#segments.length
    while (low < high) {
      const middle = (low + high) >>> 1
      if ((this.#segments[middle]?.start ?? 0) <= instant) low = middle + 1
      else high = middle
    }
    return low
  }

  #compute(instant: number, index: number): Segment {
    const moment = Temporal.Instant.fromEpochMilliseconds(instant).toZonedDateTimeISO(this.name)
    const before = this.#segments[index - 1]
    const after = this.#segments[index]
    // Searching for a transition is dear, and a walk from one segment to the next knows the one between them.
    const start = before?.end === instant ? instant : previousTransition(moment)
    const end = after?.start === instant + 1 ? after.start : nextTransition(moment)
    const segment = { start, end, offset: moment.offsetNanoseconds / 1e6 }
    // Bounded, so that walking a zone through the ages does not hold memory for ever.
    if (this.#segments.length >= SEGMENTS_KEPT) this.#segments = [segment]
    else this.#segments.splice(index, 0, segment)
    return segment
  }
}

function previousTransition(moment: Temporal.ZonedDateTime): number {
  // One millisecond on, because "previous" is strict and the moment may be a transition itself.
  return moment.add({ milliseconds: 1 }).getTimeZoneTransition('previous')?.epochMilliseconds ?? -Infinity
}

function nextTransition(moment: Temporal.ZonedDateTime): number {
  return moment.getTimeZoneTransition('next')?.epochMilliseconds ?? Infinity
}

const ZONES = new Map<string, Zone>()

/** Finds a zone by any of its IANA names, in any case. Offsets (`+05:30`) and unknown names give undefined. */
export function findZone(name: string): Zone | undefined {
  const known = ZONES.get(name)
  if (known !== undefined) return known
  const canonical = canonicalName(name)
  if (canonical === undefined) return undefined
  let zone = ZONES.get(canonical)
  if (zone === undefined) {
    zone = new Zone(canonical)
    // Keyed by canonical names alone: spellings are unlimited, zones are not.
    ZONES.set(canonical, zone)
  }
  return zone
}

function canonicalName(name: string): string | undefined {
  if (name.length > ZONE_NAME_MAX_LENGTH || !/^[a-z][a-z0-9_+/-]*$/i.test(name)) return undefined
  try {
    const cased = Temporal.Instant.fromEpochMilliseconds(0).toZonedDateTimeISO(name).timeZoneId
    // ICU knows these private names; the tz database dropped them.
    if (/^systemv\//i.test(cased)) return undefined
    return currentZoneName(cased)
  } catch (error) {
    if (error instanceof RangeError) return undefined
    throw error
  }
}
