import { messageOf } from '@carillon/api'
import { InvalidArgumentError } from 'commander'

/*
 * Parsers of option values, for commander. Their messages need not name the option: commander adds its name.
 */

export function wholeNumber(text: string): number {
  if (/^\d{1,12}$/.test(text)) return Number(text)
  throw new InvalidArgumentError('expected a whole number')
}

/** A whole number or `none`. Not null for `none`: commander would make it an empty text. */
export function countOrNone(text: string): number | 'none' {
  if (text === 'none') return text
  if (/^\d{1,12}$/.test(text)) return Number(text)
  throw new InvalidArgumentError('expected a whole number, or none')
}

/** Puts a `T` between a date and a time. Checks nothing: the server decides which instant the text means. */
export function moment(text: string): string {
  return text.trim().replace(/^(\d{4}-\d\d-\d\d) +(?=\d)/, '$1T')
}

export function json(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch (error) {
    throw new InvalidArgumentError(`expected JSON, got invalid JSON: ${messageOf(error)}`)
  }
}

export type Headers = Readonly<Record<string, string>>

/** Collects `name: value` of an option that may be repeated. */
export function header(text: string, collected: Headers = {}): Headers {
  const [, name, value = ''] = /^([^\s:]+)\s*:\s*(.*?)\s*$/.exec(text) ?? []
  if (name === undefined) throw new InvalidArgumentError('expected a header such as "Accept: text/plain"')
  return { ...collected, [name]: value }
}

/** Collects the values of an option that may be repeated. */
export function collected(text: string, before: readonly string[] = []): readonly string[] {
  return [...before, text]
}

/** A list separated by commas, such as `http, graph`. */
export function list(text: string): readonly string[] {
  const items = text
    .split(',')
    .map((item) => item.trim())
    .filter((item) => item !== '')
  if (items.length > 0) return items
  throw new InvalidArgumentError('expected a list such as http,graph')
}

export function durationMs(text: string): number {
  const ms = readDurationMs(text)
  if (ms !== undefined) return ms
  throw new InvalidArgumentError(DURATION_EXPECTED)
}

/** For fields that the API counts in whole seconds. */
export function durationSeconds(text: string): number {
  const seconds = durationMs(text) / 1000
  if (Number.isInteger(seconds)) return seconds
  throw new InvalidArgumentError('expected whole seconds')
}

export function isoDuration(text: string): string {
  const duration = readIsoDuration(text)
  if (duration !== undefined) return duration
  throw new InvalidArgumentError(DURATION_EXPECTED)
}

const DURATION_EXPECTED = 'expected a duration such as 30s, 15m, 1h30m or PT15M'

const UNITS_MS = { ms: 1, s: 1000, m: 60_000, min: 60_000, h: 3_600_000, d: 86_400_000, w: 604_800_000 } as const

type Unit = keyof typeof UNITS_MS

const SHORT = /^(?:\d{1,9}(?:ms|min|s|m|h|d|w))+$/
const SHORT_PART = /(\d{1,9})(ms|min|s|m|h|d|w)/g
const ISO = /^P(?:(\d{1,9})W)?(?:(\d{1,9})D)?(?:T(?=\d)(?:(\d{1,9})H)?(?:(\d{1,9})M)?(?:(\d{1,9}(?:\.\d{1,3})?)S)?)?$/

/** Reads `5s`, `1h30m`, `PT5S` or a number of seconds as milliseconds; undefined if the text is no duration. */
export function readDurationMs(text: string): number | undefined {
  if (/^\d{1,9}$/.test(text)) return Number(text) * 1000
  if (SHORT.test(text)) return shortParts(text).reduce((sum, [amount, unit]) => sum + amount * UNITS_MS[unit], 0)
  const match = ISO.exec(text.toUpperCase())
  if (match === null || text.length < 3) return undefined
  const [weeks = 0, days = 0, hours = 0, minutes = 0, seconds = 0] = match.slice(1).map((part) => Number(part ?? 0))
  return Math.round(((((weeks * 7 + days) * 24 + hours) * 60 + minutes) * 60 + seconds) * 1000)
}

/**
 * Converts a duration to ISO 8601, for the API. Days and weeks do not become hours, because the server counts days in local time.
 * A text that is ISO 8601 already is passed on, even with months and years.
 */
export function readIsoDuration(text: string): string | undefined {
  if (/^P\d|^PT\d/i.test(text)) return text.toUpperCase()
  if (/^\d{1,9}$/.test(text)) return `PT${text}S`
  if (!SHORT.test(text)) return undefined
  const sums = new Map<Unit, number>()
  for (const [amount, unit] of shortParts(text)) sums.set(unit, (sums.get(unit) ?? 0) + amount)
  const of = (...units: Unit[]): number => units.reduce((sum, unit) => sum + (sums.get(unit) ?? 0), 0)
  const date = part(of('w') * 7 + of('d'), 'D')
  const time = part(of('h'), 'H') + part(of('m', 'min'), 'M') + part(of('s') + of('ms') / 1000, 'S')
  return date + time === '' ? 'PT0S' : `P${date}${time === '' ? '' : `T${time}`}`
}

function shortParts(text: string): [amount: number, unit: Unit][] {
  return [...text.matchAll(SHORT_PART)].map(([, amount, unit]) => [Number(amount), unit as Unit])
}

function part(amount: number, unit: string): string {
  return amount === 0 ? '' : `${amount}${unit}`
}

/** Returns an object without its undefined fields, which are the options that the user did not pass. */
export function dropUndefined<Fields extends object>(
  fields: Fields,
): { [Name in keyof Fields]?: Exclude<Fields[Name], undefined> } {
  // The cast restores the names and types, which Object.fromEntries loses.
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined)) as {
    [Name in keyof Fields]?: Exclude<Fields[Name], undefined>
  }
}
