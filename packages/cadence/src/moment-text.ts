import { DAY_MS, FIRST_YEAR, LAST_YEAR, dayNumberOf, daysInMonth } from './wall.ts'
import type { Wall } from './wall.ts'

/** A date and time as it was written: RFC 3339 with an offset, a local time without, or a date alone; RFC 9557 zone. */
export interface MomentText {
  readonly wall: Wall
  /** Milliseconds east of UTC; `Z` is 0; null for a local time. */
  readonly offset: number | null
  /** Whether the offset says only "UTC instant" (`Z`), not what the local clocks show. */
  readonly isZulu: boolean
  readonly isDateOnly: boolean
  /** The name in brackets. */
  readonly zoneName: string | null
}

export const MOMENT_EXPECTED =
  '2026-12-24T18:00:00Z, 2026-12-24T18:00:00+01:00, 2026-12-24T18:00:00 or 2026-12-24T18:00:00[Europe/Madrid]'

const PATTERN =
  /^(\d{4})-(\d\d)-(\d\d)(?:t(\d\d):(\d\d)(?::(\d\d)(?:\.(\d{1,3})0{0,6})?)?(z|[+-]\d\d:?\d\d)?(?:\[!?([^[\]=]{1,64})\])?)?$/i

/** Reads a moment; undefined if it is none, or names a day or time that no calendar has (`24:00`, `23:59:60`, 30 February). */
export function parseMoment(text: string): MomentText | undefined {
  const match = PATTERN.exec(text)
  if (match === null) return undefined
  const [year = 0, month = 0, day = 0, hour = 0, minute = 0, second = 0] = match
    .slice(1, 7)
    .map((part) => Number(part ?? 0))
  const millisecond = Number((match[7] ?? '').padEnd(3, '0'))
  if (year < FIRST_YEAR || year > LAST_YEAR || month < 1 || month > 12 || day < 1 || day > daysInMonth(year, month)) {
    return undefined
  }
  if (hour > 23 || minute > 59 || second > 59) return undefined
  const offset = parseOffset(match[8])
  if (offset === undefined) return undefined
  return {
    wall: dayNumberOf(year, month, day) * DAY_MS + ((hour * 60 + minute) * 60 + second) * 1000 + millisecond,
    offset,
    isZulu: match[8]?.toUpperCase() === 'Z',
    isDateOnly: match[4] === undefined,
    zoneName: match[9] ?? null,
  }
}

function parseOffset(text: string | undefined): number | null | undefined {
  if (text === undefined) return null
  if (text.toUpperCase() === 'Z') return 0
  const hours = Number(text.slice(1, 3))
  const minutes = Number(text.slice(-2))
  if (hours > 23 || minutes > 59) return undefined
  return (text.startsWith('-') ? -1 : 1) * (hours * 60 + minutes) * 60_000
}

/** `2026-12-24T18:00:00`, with milliseconds only where there are some. */
export function formatWall(wall: Wall): string {
  return new Date(wall).toISOString().replace(/(\.000)?Z$/, '')
}

export function formatInstant(instant: number): string {
  return `${formatWall(instant)}Z`
}

/** RFC 9557: local time, offset and zone. */
export function formatZoned(instant: number, offset: number, zoneName: string): string {
  const wall = formatWall(instant + offset)
  if (zoneName === 'UTC') return `${wall}+00:00[UTC]`
  const minutes = Math.round(Math.abs(offset) / 60_000)
  const text = `${pad(Math.floor(minutes / 60))}:${pad(minutes % 60)}`
  return `${wall}${offset < 0 ? '-' : '+'}${text}[${zoneName}]`
}

function pad(number: number): string {
  return String(number).padStart(2, '0')
}
