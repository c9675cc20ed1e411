import { DAY, HOUR, MINUTE, SECOND } from './zone.ts'

/**
 * RFC 5545 by brute force. It visits the periods of FREQ and INTERVAL from DTSTART on, tests every day of a period against
 * each BY part, combines the days with the times of day, and applies BYSETPOS. It never computes a day, it only tests days.
 */
export interface Rule {
  readonly freq: Freq
  readonly interval: number
  readonly count: number
  readonly until: number
  readonly weekStart: number
  readonly by: Readonly<Partial<Record<Part, readonly number[]>>>
  readonly byDay: readonly { ordinal: number; weekday: number }[] | undefined
}

export type Freq = (typeof FREQS)[number]
type Part = (typeof PARTS)[number]

const FREQS = ['YEARLY', 'MONTHLY', 'WEEKLY', 'DAILY', 'HOURLY', 'MINUTELY', 'SECONDLY'] as const
const PARTS = ['MONTH', 'WEEKNO', 'YEARDAY', 'MONTHDAY', 'HOUR', 'MINUTE', 'SECOND', 'SETPOS'] as const
const WEEKDAYS = ['SU', 'MO', 'TU', 'WE', 'TH', 'FR', 'SA']

/** Reads a valid rule. UNTIL becomes the last wall time that the rule allows. */
export function readRule(text: string): Rule {
  const parts = new Map(
    text.split(';').map((part): [string, string] => [part.split('=')[0] ?? '', part.split('=')[1] ?? '']),
  )
  const by: Partial<Record<Part, readonly number[]>> = {}
  for (const part of PARTS) {
    const values = parts.get(`BY${part}`)
    if (values !== undefined) by[part] = values.split(',').map(Number)
  }
  return {
    freq: FREQS.find((freq) => freq === parts.get('FREQ')) ?? 'YEARLY',
    interval: Number(parts.get('INTERVAL') ?? 1),
    count: Number(parts.get('COUNT') ?? Infinity),
    until: readUntil(parts.get('UNTIL')),
    weekStart: WEEKDAYS.indexOf(parts.get('WKST') ?? 'MO'),
    by,
    byDay: parts.get('BYDAY')?.split(',').map(readByDay),
  }
}

function readByDay(token: string): { ordinal: number; weekday: number } {
  return { ordinal: Number(token.slice(0, -2)), weekday: WEEKDAYS.indexOf(token.slice(-2)) }
}

function readUntil(until: string | undefined): number {
  if (until === undefined) return Infinity
  const [, date = '', time] = /^(\d{8})(?:T(\d{6})Z?)?$/.exec(until) ?? []
  const day = Date.parse(`${date.slice(0, 4)}-${date.slice(4, 6)}-${date.slice(6)}T00:00:00Z`)
  if (time === undefined) return day + DAY - 1
  return day + Number(time.slice(0, 2)) * HOUR + Number(time.slice(2, 4)) * MINUTE + Number(time.slice(4)) * SECOND
}

export interface Expansion {
  readonly walls: number[]
  /** The answer is complete up to this wall time; later ones were not tried. */
  readonly through: number
}

/** The first `limit` wall times of the rule before `horizon`, from at most `periods` periods. */
export function expand(rule: Rule, start: number, horizon: number, limit: number, periods = 50_000): Expansion {
  const walls: number[] = []
  for (let index = 0; index < periods; index += 1) {
    const period = periodOf(rule, start, index)
    if (period.from >= horizon) return { walls, through: horizon }
    for (const wall of pickPositions(rule, candidates(rule, start, period))) {
      if (wall < start) continue
      if (wall > rule.until || walls.length === rule.count) return { walls, through: horizon }
      if (wall >= horizon) return { walls, through: horizon }
      if (walls.length === limit) return { walls, through: wall }
      walls.push(wall)
    }
  }
  return { walls, through: periodOf(rule, start, periods).from }
}

interface Period {
  readonly from: number
  readonly to: number
}

const FINE_UNITS: Partial<Record<Freq, number>> = { DAILY: DAY, HOURLY: HOUR, MINUTELY: MINUTE, SECONDLY: SECOND }

function periodOf({ freq, interval, weekStart }: Rule, start: number, index: number): Period {
  const date = new Date(start)
  const [year, month] = [date.getUTCFullYear(), date.getUTCMonth()]
  const steps = index * interval
  if (freq === 'YEARLY') return { from: Date.UTC(year + steps, 0, 1), to: Date.UTC(year + steps + 1, 0, 1) }
  if (freq === 'MONTHLY') return { from: Date.UTC(year, month + steps, 1), to: Date.UTC(year, month + steps + 1, 1) }
  if (freq === 'WEEKLY') {
    const from = weekOf(start, weekStart) + steps * 7 * DAY
    return { from, to: from + 7 * DAY }
  }
  const unit = FINE_UNITS[freq] ?? DAY
  const from = Math.floor(start / unit) * unit + steps * unit
  return { from, to: from + unit }
}

function candidates(rule: Rule, start: number, { from, to }: Period): number[] {
  const walls: number[] = []
  for (let day = Math.floor(from / DAY) * DAY; day < to; day += DAY) {
    if (!isDay(rule, start, day)) continue
    for (const hour of timeValues(rule, 'HOUR', start, from)) {
      for (const minute of timeValues(rule, 'MINUTE', start, from)) {
        for (const second of timeValues(rule, 'SECOND', start, from)) {
          walls.push(day + hour * HOUR + minute * MINUTE + second * SECOND)
        }
      }
    }
  }
  return [...new Set(walls)].toSorted((a, b) => a - b)
}

/** A BY part shorter than the frequency expands the period and defaults to DTSTART. Any other BY part limits the period. */
function timeValues(
  { freq, by }: Rule,
  part: 'HOUR' | 'MINUTE' | 'SECOND',
  start: number,
  period: number,
): readonly number[] {
  const isOwn = FREQS.indexOf(freq) >= FREQS.indexOf(`${part}LY`)
  if (!isOwn) return by[part] ?? [timeOf(start, part)]
  const own = timeOf(period, part)
  return by[part]?.includes(own) === false ? [] : [own]
}

function timeOf(wall: number, part: 'HOUR' | 'MINUTE' | 'SECOND'): number {
  const date = new Date(wall)
  if (part === 'HOUR') return date.getUTCHours()
  return part === 'MINUTE' ? date.getUTCMinutes() : date.getUTCSeconds()
}

function isDay(rule: Rule, start: number, day: number): boolean {
  return (
    allows(rule.by.MONTH, monthOf(day)) &&
    allows(rule.by.WEEKNO, weekNumber(day, rule.weekStart), -weeksFromEnd(day, rule.weekStart)) &&
    allows(rule.by.YEARDAY, dayOfYear(day), dayOfYear(day) - daysInYear(day) - 1) &&
    allows(rule.by.MONTHDAY, dayOfMonth(day), dayOfMonth(day) - daysInMonth(day) - 1) &&
    (rule.byDay === undefined || rule.byDay.some((token) => isWeekday(rule, token, day))) &&
    isDefaultDay(rule, start, day)
  )
}

function allows(values: readonly number[] | undefined, ...readings: number[]): boolean {
  return values === undefined || readings.some((reading) => values.includes(reading))
}

/** RFC 5545: "Information, not contained in the rule … [is] derived from DTSTART". */
function isDefaultDay({ freq, by, byDay }: Rule, start: number, day: number): boolean {
  const isOpen = by.MONTHDAY === undefined && by.YEARDAY === undefined && byDay === undefined
  if (!isOpen) return true
  if (freq === 'WEEKLY' || (freq === 'YEARLY' && by.WEEKNO !== undefined)) return weekdayOf(day) === weekdayOf(start)
  if (freq === 'MONTHLY') return dayOfMonth(day) === dayOfMonth(start)
  if (freq !== 'YEARLY') return true
  return dayOfMonth(day) === dayOfMonth(start) && (by.MONTH !== undefined || monthOf(day) === monthOf(start))
}

function isWeekday(
  { freq, by }: Rule,
  { ordinal, weekday }: { ordinal: number; weekday: number },
  day: number,
): boolean {
  if (weekdayOf(day) !== weekday) return false
  if (ordinal === 0) return true
  const isWithinMonth = freq === 'MONTHLY' || by.MONTH !== undefined
  const position = isWithinMonth ? dayOfMonth(day) : dayOfYear(day)
  const length = isWithinMonth ? daysInMonth(day) : daysInYear(day)
  return ordinal === Math.ceil(position / 7) || ordinal === -Math.ceil((length - position + 1) / 7)
}

function pickPositions({ by }: Rule, walls: number[]): number[] {
  if (by.SETPOS === undefined) return walls
  return walls.filter((_, index) => allows(by.SETPOS, index + 1, index - walls.length))
}

/** Midnight of the day on which the week of this wall time began. */
function weekOf(wall: number, weekStart: number): number {
  const day = Math.floor(wall / DAY) * DAY
  return day - ((weekdayOf(day) - weekStart + 7) % 7) * DAY
}

/** A week belongs to the year that holds four of its days, which is the year of its fourth day. */
function weekNumber(day: number, weekStart: number): number {
  return Math.ceil(dayOfYear(weekOf(day, weekStart) + 3 * DAY) / 7)
}

function weeksFromEnd(day: number, weekStart: number): number {
  const fourth = weekOf(day, weekStart) + 3 * DAY
  return Math.ceil((daysInYear(fourth) - dayOfYear(fourth) + 1) / 7)
}

function weekdayOf(wall: number): number {
  return new Date(wall).getUTCDay()
}

function monthOf(wall: number): number {
  return new Date(wall).getUTCMonth() + 1
}

function dayOfMonth(wall: number): number {
  return new Date(wall).getUTCDate()
}

function daysInMonth(wall: number): number {
  const date = new Date(wall)
  return new Date(Date.UTC(date.getUTCFullYear(), date.getUTCMonth() + 1, 0)).getUTCDate()
}

function dayOfYear(wall: number): number {
  return Math.floor((wall - Date.UTC(new Date(wall).getUTCFullYear(), 0, 1)) / DAY) + 1
}

function daysInYear(wall: number): number {
  const year = new Date(wall).getUTCFullYear()
  return (Date.UTC(year + 1, 0, 1) - Date.UTC(year, 0, 1)) / DAY
}
