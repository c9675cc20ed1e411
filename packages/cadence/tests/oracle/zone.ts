/**
 * Wall times and instants of a zone, from `Intl.DateTimeFormat` only. Shares no code with the library under test.
 * A wall time is encoded as the epoch milliseconds that the same date and time has in UTC.
 */

export const SECOND = 1_000
export const MINUTE = 60 * SECOND
export const HOUR = 60 * MINUTE
export const DAY = 24 * HOUR

export interface Transition {
  readonly at: number
  readonly before: number
  readonly after: number
}

interface Stretch {
  readonly from: number
  readonly to: number
  readonly offset: number
}

/** Since 1990 no zone has changed its offset twice within this span, so a scan with this step misses no transition. */
const SCAN_STEP = 2 * DAY
const BLOCK = 365 * DAY

export class Zone {
  readonly name: string
  readonly #format: Intl.DateTimeFormat
  readonly #blocks = new Map<number, Stretch[]>()
  /** The latest answer, cached because a sweep asks for consecutive minutes. */
  #recent: Stretch = { from: 0, to: 0, offset: 0 }

  constructor(name: string) {
    this.name = name
    this.#format = new Intl.DateTimeFormat('en-US', {
      timeZone: name,
      calendar: 'gregory',
      numberingSystem: 'latn',
      hourCycle: 'h23',
      year: 'numeric',
      month: '2-digit',
      day: '2-digit',
      hour: '2-digit',
      minute: '2-digit',
      second: '2-digit',
    })
  }

  /** The wall time as `Intl` gives it, without the table of transitions. Keeps milliseconds. */
  readWall(instant: number): number {
    const [month = 0, day = 0, year = 0, hour = 0, minute = 0, second = 0] = this.#format
      .format(instant)
      .split(/\D+/)
      .map(Number)
    return Date.UTC(year, month - 1, day, hour, minute, second) + (instant - Math.floor(instant / SECOND) * SECOND)
  }

  offsetAt(instant: number): number {
    if (instant < this.#recent.from || instant >= this.#recent.to) {
      const stretches = this.#stretches(Math.floor(instant / BLOCK))
      this.#recent = stretches.find(({ to }) => instant < to) ?? this.#recent
    }
    return this.#recent.offset
  }

  wallAt(instant: number): number {
    return instant + this.offsetAt(instant)
  }

  /** Every instant at which the clocks show `wall`, in order: none in a gap, two in a fold. */
  instantsOf(wall: number): number[] {
    const found = new Set<number>()
    for (let near = wall - 2 * DAY; near <= wall + 2 * DAY; near += DAY) {
      const instant = wall - this.offsetAt(near)
      if (this.wallAt(instant) === wall) found.add(instant)
    }
    return [...found].toSorted((a, b) => a - b)
  }

  /** The wall times that a spring-forward at this instant skips: from inclusive, to exclusive. Null if nothing is skipped. */
  gapEndingAt(instant: number): { from: number; to: number } | null {
    const before = this.offsetAt(instant - 1)
    const after = this.offsetAt(instant)
    return after > before ? { from: instant + before, to: instant + after } : null
  }

  transitions(from: number, to: number): Transition[] {
    const found: Transition[] = []
    for (let block = Math.floor(from / BLOCK); block * BLOCK < to; block += 1) {
      for (const { from: at, offset } of this.#stretches(block)) {
        const before = this.offsetAt(at - 1)
        if (at >= from && at < to && before !== offset) found.push({ at, before, after: offset })
      }
    }
    return found
  }

  /** An instant as local time with its offset, such as `2027-03-14T03:00:00-04:00`, for messages and golden vectors. */
  print(instant: number): string {
    const offset = this.offsetAt(instant)
    const sign = offset < 0 ? '-' : '+'
    const reading = new Date(Math.abs(offset)).toISOString().slice(11, 16)
    return `${printWall(instant + offset)}${sign}${reading}`
  }

  #stretches(block: number): Stretch[] {
    const known = this.#blocks.get(block)
    if (known !== undefined) return known
    const end = (block + 1) * BLOCK
    const stretches: Stretch[] = []
    let from = block * BLOCK
    let offset = this.#readOffset(from)
    for (let scanned = from; scanned < end;) {
      const next = Math.min(scanned + SCAN_STEP, end)
      const nextOffset = this.#readOffset(next)
      if (nextOffset !== offset) {
        const to = this.#bisect(scanned, next)
        stretches.push({ from, to, offset })
        ;[from, offset] = [to, nextOffset]
      }
      scanned = next
    }
    if (from < end) stretches.push({ from, to: end, offset })
    this.#blocks.set(block, stretches)
    return stretches
  }

  /** The first millisecond in `(low, high]` that has the offset of `high`. */
  #bisect(low: number, high: number): number {
    const offset = this.#readOffset(high)
    while (high - low > 1) {
      const middle = Math.floor((low + high) / 2)
      if (this.#readOffset(middle) === offset) high = middle
      else low = middle
    }
    return high
  }

  #readOffset(instant: number): number {
    return this.readWall(instant) - instant
  }
}

/** A wall time as text, such as `2027-03-14T03:00:00`. */
export function printWall(wall: number): string {
  return new Date(wall).toISOString().slice(0, 19)
}

export function wall(reading: string): number {
  return Date.parse(`${reading}Z`)
}

const zones = new Map<string, Zone>()

export function zone(name: string): Zone {
  let found = zones.get(name)
  if (found === undefined) zones.set(name, (found = new Zone(name)))
  return found
}
