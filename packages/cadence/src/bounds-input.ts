import { formatInstant } from './moment-text.ts'
import { firstInstantOf, formatMoment, lastInstantOf, readMoment } from './moment.ts'
import type { Moment } from './moment.ts'
import type { ParseContext } from './parse-context.ts'
import { FIRST_INSTANT, LAST_INSTANT, SECOND_MS } from './wall.ts'
import type { Zone } from './zone.ts'

/** Slots are counted one by one. */
export const MAX_RUNS = 10_000

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
  /** A start is needed even where `maxRuns` does not need one to count from. */
  readonly isStartNeeded?: boolean
  /** The start where none is given; null if it cannot be told. */
  readonly defaultStart?: Moment | null
}

export function readBounds(context: ParseContext, zone: Zone, options: BoundsOptions = {}): Bounds | undefined {
  const { reader, problems, now } = context
  const maxRuns = reader.integer('maxRuns', 1, options.maxRunsMax ?? MAX_RUNS) ?? null
  const given = readEdge(context, 'startAt', zone)
  const endAt = readEdge(context, 'endAt', zone)
  if (given === undefined || endAt === undefined) return undefined
  const isStartNeeded = maxRuns !== null || options.isStartNeeded === true
  const startAt = given ?? (isStartNeeded ? (options.defaultStart ?? nextSecond(now)) : null)
  if (startAt === null && isStartNeeded) {
    problems.add('missing_field', reader.pathOf('startAt'), 'a time to count from', 'nothing')
    return undefined
  }
  const from = startAt === null ? FIRST_INSTANT : firstInstantOf(startAt, zone)
  const to = endAt === null ? LAST_INSTANT : lastInstantOf(endAt, zone)
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
  const { reader } = context
  if (!reader.has(name)) return null
  const text = reader.text(name)
  return text === undefined ? undefined : readMoment(context, text, reader.pathOf(name), zone)
}

/** Counting starts from creation; a slot at that very instant has passed. */
function nextSecond(now: number | null): Moment | null {
  return now === null ? null : { kind: 'instant', at: Math.floor(now / SECOND_MS) * SECOND_MS + SECOND_MS }
}
