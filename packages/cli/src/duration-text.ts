const UNITS_MS = { ms: 1, s: 1000, m: 60_000, min: 60_000, h: 3_600_000, d: 86_400_000, w: 604_800_000 } as const

type Unit = keyof typeof UNITS_MS

const SHORT = /^(?:\d{1,9}(?:ms|min|s|m|h|d|w))+$/
const SHORT_PART = /(\d{1,9})(ms|min|s|m|h|d|w)/g
const ISO = /^P(?:(\d{1,9})W)?(?:(\d{1,9})D)?(?:T(?=\d)(?:(\d{1,9})H)?(?:(\d{1,9})M)?(?:(\d{1,9}(?:\.\d{1,3})?)S)?)?$/

export const DURATION_EXPECTED = 'expected a duration such as 30s, 15m, 1h30m or PT15M'

/** `5s`, `1h30m`, `PT5S`, or a bare number of seconds, in milliseconds; undefined if it is none. */
export function readDurationMs(text: string): number | undefined {
  if (/^\d{1,9}$/.test(text)) return Number(text) * 1000
  if (SHORT.test(text)) return shortParts(text).reduce((sum, [amount, unit]) => sum + amount * UNITS_MS[unit], 0)
  const match = ISO.exec(text.toUpperCase())
  if (match === null || text.length < 3) return undefined
  const [weeks = 0, days = 0, hours = 0, minutes = 0, seconds = 0] = match.slice(1).map((part) => Number(part ?? 0))
  return Math.round(((((weeks * 7 + days) * 24 + hours) * 60 + minutes) * 60 + seconds) * 1000)
}

/**
 * The same as an ISO 8601 duration, for the service. Days and weeks stay days and weeks, which follow the clocks of a zone;
 * what is written as ISO already goes on as it is, months and years too.
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
