import { readBounds } from '../bounds-input.ts'
import { CalendarIntervalRule } from '../calendar-interval-rule.ts'
import { describeDuration } from '../duration-description.ts'
import { DURATION_EXPECTED, formatDuration, isElapsed, parseDuration, shortestMs } from '../duration-text.ts'
import type { Duration } from '../duration-text.ts'
import { ElapsedSource } from '../elapsed-source.ts'
import type { CadenceDraft, ParseContext } from '../parse-context.ts'
import { quote } from '../problem.ts'
import { SlotWalk } from '../slot-walk.ts'
import { DAY_MS, SECOND_MS } from '../wall.ts'
import type { Zone } from '../zone.ts'
import { dstPolicy, instantOf, readDst, readZone, wallOf } from '../zoned-input.ts'
import type { Moment } from '../zoned-input.ts'

const EVERY_MAX_MS = 36_525 * DAY_MS
// Elapsed slots are counted by arithmetic, not one by one.
const ELAPSED_MAX_RUNS = 1_000_000_000

export function readInterval(context: ParseContext): CadenceDraft | undefined {
  const duration = readEvery(context)
  const dstSpec = readDst(context)
  const zone = readZone(context)
  if (duration === undefined || zone === undefined) return undefined
  const bounds = readBounds(context, zone, {
    defaultStart: oneIntervalAfter(context.now, duration, zone),
    ...(isElapsed(duration) ? { maxRunsMax: ELAPSED_MAX_RUNS } : {}),
  })
  if (bounds === undefined || bounds.startAt === null) return undefined
  const dst = dstPolicy(dstSpec, false)
  const wallRule = isElapsed(duration) ? null : new CalendarIntervalRule(wallOf(bounds.startAt, zone), duration)
  const start = instantOf(bounds.startAt, zone, 'first')
  const lastCounted = bounds.maxRuns === null ? Infinity : start + (bounds.maxRuns - 1) * duration.timeMs
  return {
    spec: {
      kind: 'interval',
      every: formatDuration(duration),
      timezone: zone.name,
      ...bounds.spec,
      startAt: bounds.spec.startAt ?? '',
      ...(dstSpec === undefined ? {} : { dst: dstSpec }),
    },
    zone,
    dst,
    source: wallRule === null ? new ElapsedSource(start, duration.timeMs) : new SlotWalk(wallRule, zone, dst),
    wallRule,
    from: bounds.from,
    to: wallRule === null ? Math.min(bounds.to, lastCounted) : bounds.to,
    maxRuns: wallRule === null ? null : bounds.maxRuns,
    closest: shortestMs(duration),
    added: [],
    phrase: () => describeDuration(duration),
  }
}

function readEvery(context: ParseContext): Duration | undefined {
  const { reader, problems } = context
  const value = reader.value('every')
  if (value === undefined) {
    problems.add('missing_field', 'every', DURATION_EXPECTED, 'nothing')
    return undefined
  }
  if (typeof value !== 'number' && typeof value !== 'string') {
    problems.add('wrong_type', 'every', DURATION_EXPECTED, quote(value))
    return undefined
  }
  const duration = typeof value === 'number' ? seconds(value) : parseDuration(readRepetition(context, value))
  if (duration === undefined) {
    problems.add('syntax', 'every', DURATION_EXPECTED, quote(value))
    return undefined
  }
  const length = shortestMs(duration)
  if (length > 0 && length <= EVERY_MAX_MS) return duration
  problems.add('out_of_range', 'every', 'more than nothing and at most 100 years', quote(value))
  return undefined
}

function seconds(value: number): Duration | undefined {
  const timeMs = Math.round(value * SECOND_MS)
  return Number.isSafeInteger(timeMs) ? { months: 0, days: 0, timeMs } : undefined
}

/** Splits `R[n]/start/duration` into the fields that say the same; returns the duration's text. */
function readRepetition({ reader }: ParseContext, every: string): string {
  const match = /^R(\d{0,9}|-1)\/([^/]+)\/([^/]+)$/i.exec(every)
  const [, count = '', start = '', duration = ''] = match ?? []
  if (match === null) return every
  reader.supply('startAt', start, 'every')
  if (count !== '' && count !== '-1') reader.supply('maxRuns', Number(count), 'every')
  return duration
}

/** "Every 15 minutes", said now, means for the first time in 15 minutes. */
function oneIntervalAfter(now: number | null, duration: Duration, zone: Zone): Moment | null {
  if (now === null) return null
  const start = Math.floor(now / SECOND_MS) * SECOND_MS
  if (isElapsed(duration)) return { kind: 'instant', at: start + duration.timeMs }
  const wall = new CalendarIntervalRule(start + zone.offsetAt(start), duration).next(start + zone.offsetAt(start))
  return wall === null ? null : { kind: 'wall', at: wall }
}
