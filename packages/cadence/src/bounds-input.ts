import { formatInstant } from './moment-text.ts'
import type { ParseContext } from './parse-context.ts'
import { FIRST_WALL, LAST_WALL, SECOND_MS } from './wall.ts'
import type { Zone } from './zone.ts'
import { formatMoment, instantOf, readMoment } from './zoned-input.ts'
import type { Moment } from './zoned-input.ts'

const MAX_RUNS = 10_000

/** `startAt`, `endAt` and `maxRuns`: the same on every recurring kind. */
export interface Bounds {
  readonly startAt: Moment | null
  /** First and last instant that may be a slot, both inclusive. */
  readonly from: number
  readonly to: number
  readonly maxRuns: number | null
  /** For the spec. */
  readonly spec: { readonly endAt?: string; readonly maxRuns?: number; readonly startAt?: string }
}

export interface BoundsOptions {
  readonly maxRunsMax?: number
  /** What counts as the start where none is given; without it, a start is needed for `maxRuns` only. */
  readonly defaultStart?: Moment | null
}

export function readBounds(context: ParseContext, zone: Zone, options: BoundsOptions = {}): Bounds | undefined {
  const { reader, problems, now } = context
  const maxRuns = reader.integer('maxRuns', 1, options.maxRunsMax ?? MAX_RUNS) ?? null
  const given = readEdge(context, 'startAt', zone)
  const endAt = readEdge(context, 'endAt', zone)
  if (given === undefined || endAt === undefined) return undefined
  const isStartNeeded = maxRuns !== null || options.defaultStart !== undefined
  const fallback = options.defaultStart === undefined ? nextSecond(now) : options.defaultStart
  const startAt = given ?? (isStartNeeded ? fallback : null)
  if (startAt === null && isStartNeeded) {
    problems.add('missing_field', reader.pathOf('startAt'), 'a time to count from', 'nothing')
    return undefined
  }
  const from = startAt === null ? FIRST_WALL : instantOf(startAt, zone, 'first')
  const to = endAt === null ? LAST_WALL : instantOf(endAt, zone, 'second')
  if (startAt !== null && to < from) {
    problems.add('conflict', reader.pathOf('endAt'), `a time after ${formatInstant(from)} (startAt)`, formatInstant(to))
    return undefined
  }
  const spec = {
    ...(startAt === null ? {} : { startAt: formatMoment(startAt) }),
    ...(endAt === null ? {} : { endAt: formatMoment(endAt) }),
    ...(maxRuns === null ? {} : { maxRuns }),
  }
  return { startAt, from, to, maxRuns, spec }
}

/** Null if absent, undefined if wrong. */
function readEdge(context: ParseContext, name: 'endAt' | 'startAt', zone: Zone): Moment | null | undefined {
  if (!context.reader.has(name)) return null
  const text = context.reader.text(name)
  return text === undefined ? undefined : readMoment(context, text, context.reader.pathOf(name), zone)
}

/** Counting starts from creation; a slot at that very instant has passed. */
function nextSecond(now: number | null): Moment | null {
  return now === null ? null : { kind: 'instant', at: Math.floor(now / SECOND_MS) * SECOND_MS + SECOND_MS }
}
