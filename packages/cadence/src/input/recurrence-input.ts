import { CADENCE_LIMITS } from '../limits.ts'
import { firstInstantOf, formatMoment, lastInstantOf } from '../slots/moment.ts'
import type { Moment } from '../slots/moment.ts'
import type { DstSpec } from '../time/dst-policy.ts'
import { formatInstant } from '../time/moment-text.ts'
import { FIRST_INSTANT, LAST_INSTANT, SECOND_MS } from '../time/wall-time.ts'
import { UTC } from '../time/zone.ts'
import type { Zone } from '../time/zone.ts'
import { readMoment } from './moment-input.ts'
import type { ParseContext } from './parse-context.ts'
import { readDst, readZone } from './zone-input.ts'

/** The fields that cron, rrule and frequency share. */
export interface Recurrence {
  readonly zone: Zone
  readonly dst: DstSpec | undefined
  readonly bounds: Bounds
}

/** Returns the zone even if another field is wrong, so the caller can still check the fields that depend on the zone. */
export function readRecurrence(context: ParseContext): { zone: Zone | undefined; recurrence: Recurrence | undefined } {
  const dst = readDst(context)
  const zone = readZone(context)
  // Bounds are read even if the zone is wrong, so the caller gets their problems too.
  const bounds = readBounds(context, zone ?? UTC)
  return { zone, recurrence: zone === undefined || bounds === undefined ? undefined : { zone, dst, bounds } }
}

/** The shared fields in their canonical form. */
export function recurrenceSpec({
  zone,
  dst,
  bounds,
}: Recurrence): Bounds['spec'] & { timezone: string; dst?: DstSpec } {
  return { timezone: zone.name, ...bounds.spec, ...(dst === undefined ? {} : { dst }) }
}

/** `startAt`, `endAt` and `maxRuns`, which every recurring kind takes. */
export interface Bounds {
  readonly startAt: Moment | null
  /** First and last instant that may be a slot, both inclusive. */
  readonly from: number
  readonly to: number
  readonly maxRuns: number | null
  /** The same fields in their canonical form. */
  readonly spec: { readonly endAt?: string; readonly maxRuns?: number; readonly startAt?: string }
}

export interface BoundsOptions {
  /** @default `CADENCE_LIMITS.maxRuns` */
  readonly maxRunsMax?: number
  /** True if the rule counts its slots from the start, so it needs a start even without `maxRuns`. */
  readonly isStartNeeded?: boolean
  /** The start if the input needs one and names none. If this is null or absent, the start is the second after `now`. */
  readonly defaultStart?: Moment | null
}

export function readBounds(context: ParseContext, zone: Zone, options: BoundsOptions = {}): Bounds | undefined {
  const { reader, problems, now } = context
  const maxRuns = reader.integer('maxRuns', 1, options.maxRunsMax ?? CADENCE_LIMITS.maxRuns) ?? null
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

/** Null if the field is absent, undefined if it is wrong. */
function readEdge(context: ParseContext, name: 'endAt' | 'startAt', zone: Zone): Moment | null | undefined {
  const { reader } = context
  if (!reader.has(name)) return null
  const text = reader.text(name)
  return text === undefined ? undefined : readMoment(context, text, reader.pathOf(name), zone)
}

/** The default start: the second after `now`. A slot at `now` itself has already passed. */
function nextSecond(now: number | null): Moment | null {
  return now === null ? null : { kind: 'instant', at: Math.floor(now / SECOND_MS) * SECOND_MS + SECOND_MS }
}
