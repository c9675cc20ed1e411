import { DAY_MS, FIRST_YEAR, LAST_YEAR, dayNumberOf, daysInMonth } from './wall-time.ts'
import type { WallTime } from './wall-time.ts'

/** The parts of a written date and time: RFC 3339 with an offset, local time without one, or a date, plus an RFC 9557 zone. */
export interface MomentText {
  readonly wall: WallTime
  /** Milliseconds east of UTC: 0 for `Z`, null for a local time. */
  readonly offset: number | null
  /** True for `Z`, which names an instant and says nothing about the local offset. */
  readonly isZulu: boolean
  readonly isDateOnly: boolean
  /** The name in brackets: `Europe/Madrid`. */
  readonly zoneName: string | null
}

/** Why a text is not a date and time. */
export interface MomentProblem {
  readonly code: 'out_of_range' | 'syntax'
  readonly expected: string
}

export const MOMENT_EXPECTED =
  '2026-12-24T18:00:00Z, 2026-12-24T18:00:00+01:00, 2026-12-24T18:00:00 or 2026-12-24T18:00:00[Europe/Madrid]'

const EXTENDED =
  /^(\d{4})-(\d\d)-(\d\d)(?:t(\d\d):(\d\d)(?::(\d\d)(?:\.(\d{1,9}))?)?(z|[+-]\d\d:?\d\d)?(?:\[!?([^[\]=]{1,64})\])?)?$/i

/** The iCalendar form: `20261224T180000Z`. */
const BASIC = /^(\d{4})(\d\d)(\d\d)(?:t(\d\d)(\d\d)(\d\d)(z)?)?$/i

/** Parses a date and time. Returns a `MomentProblem` for any other text. */
export function parseMoment(text: string): MomentText | MomentProblem {
  const basic = BASIC.exec(text)
  const match = basic ?? EXTENDED.exec(text)
  if (match === null) return { code: 'syntax', expected: MOMENT_EXPECTED }
  const [year = 0, month = 0, day = 0, hour = 0, minute = 0, second = 0] = match
    .slice(1, 7)
    .map((part) => Number(part ?? 0))
  const fraction = (basic === null ? (match[7] ?? '') : '').padEnd(3, '0')
  const offsetText = (basic === null ? match[8] : match[7])?.toUpperCase()
  if (year < FIRST_YEAR || year > LAST_YEAR) return outOfRange(`a year from ${FIRST_YEAR} to ${LAST_YEAR}`)
  if (month < 1 || month > 12 || day < 1 || day > daysInMonth(year, month)) {
    return outOfRange('a day that the calendar has')
  }
  if (hour > 23 || minute > 59 || second > 59) return outOfRange('a time from 00:00:00 to 23:59:59')
  if (/[1-9]/.test(fraction.slice(3))) return outOfRange('milliseconds at most')
  const offset = parseOffset(offsetText)
  if (offset === undefined) return outOfRange('an offset of less than 24 hours')
  const time = ((hour * 60 + minute) * 60 + second) * 1000 + Number(fraction.slice(0, 3))
  return {
    wall: dayNumberOf(year, month, day) * DAY_MS + time,
    offset,
    isZulu: offsetText === 'Z',
    isDateOnly: match[4] === undefined,
    zoneName: basic === null ? (match[9] ?? null) : null,
  }
}

export function isMomentProblem(parsed: MomentText | MomentProblem): parsed is MomentProblem {
  return 'code' in parsed
}

function outOfRange(expected: string): MomentProblem {
  return { code: 'out_of_range', expected }
}

function parseOffset(text: string | undefined): number | null | undefined {
  if (text === undefined) return null
  if (text === 'Z') return 0
  const hours = Number(text.slice(1, 3))
  const minutes = Number(text.slice(-2))
  if (hours > 23 || minutes > 59) return undefined
  return (text.startsWith('-') ? -1 : 1) * (hours * 60 + minutes) * 60_000
}

/** `2026-12-24T18:00:00`; milliseconds are shown only if they are not zero. */
export function formatWallTime(wall: WallTime): string {
  return new Date(wall).toISOString().replace(/(\.000)?Z$/, '')
}

/** `2026-12-24`. */
export function formatDate(wall: WallTime): string {
  return formatWallTime(wall).slice(0, 10)
}

export function formatInstant(instant: number): string {
  return `${formatWallTime(instant)}Z`
}

/** Local time, offset and zone as in RFC 9557: `2026-12-24T18:00:00+01:00[Europe/Madrid]`. */
export function formatZoned(instant: number, offset: number, zoneName: string): string {
  const minutes = Math.round(Math.abs(offset) / 60_000)
  const size = `${pad(Math.floor(minutes / 60))}:${pad(minutes % 60)}`
  return `${formatWallTime(instant + offset)}${offset < 0 ? '-' : '+'}${size}[${zoneName}]`
}

function pad(number: number): string {
  return String(number).padStart(2, '0')
}
