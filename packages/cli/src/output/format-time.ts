const MINUTE_S = 60
const HOUR_S = 60 * MINUTE_S
const DAY_S = 24 * HOUR_S

/** An instant in the local time of a zone, with the offset from UTC: `2026-12-24 18:00:00+01:00`. */
export function formatLocal(instant: string | number, timezone: string): string {
  const at = new Date(instant).getTime()
  const offsetMinutes = offsetAt(at, timezone)
  const text = new Date(at + offsetMinutes * 60_000)
    .toISOString()
    .replace('T', ' ')
    .replace(/(\.000)?Z$/, '')
  return text + formatOffset(offsetMinutes, timezone)
}

/** The time until or since an instant: `in 4 s`, `3 min ago`. */
export function formatRelative(instant: string | number, now: number): string {
  const seconds = Math.round((new Date(instant).getTime() - now) / 1000)
  if (seconds === 0) return 'now'
  return seconds > 0 ? `in ${formatSeconds(seconds)}` : `${formatSeconds(-seconds)} ago`
}

/** Whole numbers of one unit: `4 s`, `12 min`, `30 h`, `12 d`. The next unit begins at two of it. */
function formatSeconds(seconds: number): string {
  if (seconds < 2 * MINUTE_S) return `${seconds} s`
  if (seconds < 2 * HOUR_S) return `${Math.round(seconds / MINUTE_S)} min`
  return seconds < 2 * DAY_S ? `${Math.round(seconds / HOUR_S)} h` : `${Math.round(seconds / DAY_S)} d`
}

export function formatMs(ms: number): string {
  return Math.abs(ms) < 10_000 ? `${ms} ms` : formatSeconds(Math.round(ms / 1000))
}

/** The offset of local time from UTC in minutes, positive to the east. A zone that this machine does not know counts as UTC. */
function offsetAt(at: number, timezone: string): number {
  const parts = new Map(
    formatOf(timezone)
      .formatToParts(at)
      .map(({ type, value }) => [type, Number(value)]),
  )
  const [year = 0, month = 1, day = 1, hour = 0, minute = 0, second = 0] = (
    ['year', 'month', 'day', 'hour', 'minute', 'second'] as const
  ).map((part) => parts.get(part))
  const local = Date.UTC(year, month - 1, day, hour, minute, second)
  return Math.round((local - at) / 60_000)
}

const formats = new Map<string, Intl.DateTimeFormat>()

function formatOf(timezone: string): Intl.DateTimeFormat {
  const known = formats.get(timezone)
  if (known !== undefined) return known
  const format = createFormat(timezone) ?? formatOf('UTC')
  formats.set(timezone, format)
  return format
}

function createFormat(timeZone: string): Intl.DateTimeFormat | undefined {
  try {
    return new Intl.DateTimeFormat('en-u-ca-iso8601-nu-latn', {
      timeZone,
      hourCycle: 'h23',
      year: 'numeric',
      month: 'numeric',
      day: 'numeric',
      hour: 'numeric',
      minute: 'numeric',
      second: 'numeric',
    })
  } catch {
    return undefined
  }
}

function formatOffset(minutes: number, timezone: string): string {
  if (minutes === 0 && timezone === 'UTC') return 'Z'
  const size = Math.abs(minutes)
  const pad = (number: number): string => String(number).padStart(2, '0')
  return `${minutes < 0 ? '-' : '+'}${pad(Math.floor(size / 60))}:${pad(size % 60)}`
}
