import pg from 'pg'

const TIMESTAMPTZ: number = pg.types.builtins.TIMESTAMPTZ
const parseWithDriver = pg.types.getTypeParser(TIMESTAMPTZ) as (text: string) => Date

let last: { readonly text: string; readonly time: number } | undefined

/**
 * Reads an instant as epoch milliseconds. Sessions with our settings (`TIME_FLAGS`) send ISO in UTC, so every digit has a fixed
 * position: `2026-11-16 09:00:00+00`, with up to six decimals before the zone. All other texts go to the driver's own parser, which
 * accepts every format of Postgres and is slower. A batch has many equal instants, so the last one is kept.
 */
export function parseInstant(text: string): number {
  if (text === last?.text) return last.time
  const isIsoUtc = text.length >= 22 && text.charCodeAt(10) === 32 && text.endsWith('+00') && !text.startsWith('00')
  if (!isIsoUtc) return Number(parseWithDriver(text))
  last = { text, time: timeOf(text) }
  return last.time
}

function timeOf(text: string): number {
  return Date.UTC(
    numberAt(text, 0, 4),
    numberAt(text, 5, 7) - 1,
    numberAt(text, 8, 10),
    numberAt(text, 11, 13),
    numberAt(text, 14, 16),
    numberAt(text, 17, 19),
    millisecondsOf(text),
  )
}

function numberAt(text: string, from: number, to: number): number {
  let value = 0
  for (let at = from; at < to; at += 1) value = value * 10 + (text.charCodeAt(at) - 48)
  return value
}

/** Cuts microseconds off, as the driver's own parser does. */
function millisecondsOf(text: string): number {
  if (text.charCodeAt(19) !== 46) return 0
  const decimals = Math.min(text.length - 3, 23) - 20
  return numberAt(text, 20, 20 + decimals) * 10 ** (3 - decimals)
}
