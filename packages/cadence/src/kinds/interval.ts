import { MAX_RUNS, readBounds } from '../bounds-input.ts'
import type { Bounds } from '../bounds-input.ts'
import { CalendarIntervalRule } from '../calendar-interval-rule.ts'
import { formatDuration, isElapsed, parseDuration, shortestMs } from '../duration-text.ts'
import type { Duration } from '../duration-text.ts'
import { ElapsedSource } from '../elapsed-source.ts'
import { describeDuration } from '../english/duration-phrase.ts'
import { describeMoment } from '../english/moment-phrase.ts'
import { localDraft } from '../local-draft.ts'
import { anchorWallOf, firstInstantOf, formatMoment, readMoment } from '../moment.ts'
import type { Moment } from '../moment.ts'
import type { CadenceDraft, ParseContext } from '../parse-context.ts'
import { quote } from '../problem.ts'
import { DAY_MS, SECOND_MS } from '../wall.ts'
import type { Wall } from '../wall.ts'
import { UTC } from '../zone.ts'
import type { Zone } from '../zone.ts'
import { dstPolicy, readDst, readZone, refuseDst } from '../zoned-input.ts'

// Elapsed slots are counted by arithmetic, not one by one.
const ELAPSED_MAX_RUNS = 1_000_000_000

export function readInterval(context: ParseContext): CadenceDraft | undefined {
  const duration = readEvery(context)
  const zone = readZone(context)
  if (duration === undefined || zone === undefined) {
    // Read all the same, so that their problems are told as well.
    readBounds(context, zone ?? UTC, { maxRunsMax: ELAPSED_MAX_RUNS })
    readDst(context)
    readAnchor(context, zone ?? UTC)
    return undefined
  }
  return isElapsed(duration) ? elapsedDraft(context, duration, zone) : calendarDraft(context, duration, zone)
}

function elapsedDraft(context: ParseContext, duration: Duration, zone: Zone): CadenceDraft | undefined {
  refuseDst(context)
  const every = duration.timeMs
  const anchor = readAnchor(context, zone)
  const now = secondOf(context.now)
  const bounds = readBounds(context, zone, {
    maxRunsMax: ELAPSED_MAX_RUNS,
    isStartNeeded: anchor === null,
    // "Every 15 minutes", said now, means for the first time in 15 minutes.
    ...(anchor === null ? { defaultStart: now === null ? null : { kind: 'instant', at: now + every } } : {}),
  })
  const origin = anchor ?? bounds?.startAt
  if (bounds === undefined || origin === null || origin === undefined) return undefined
  const source = new ElapsedSource(firstInstantOf(origin, zone), every)
  const lastCounted = (source.next(bounds.from - 1) ?? Infinity) + ((bounds.maxRuns ?? Infinity) - 1) * every
  return {
    spec: intervalSpec(duration, zone, anchor, bounds),
    zone,
    source,
    local: null,
    from: bounds.from,
    to: bounds.to,
    maxRuns: bounds.maxRuns,
    last: lastCounted,
    closest: every,
    phrase: () => intervalPhrase(duration, anchor, zone),
  }
}

function calendarDraft(context: ParseContext, duration: Duration, zone: Zone): CadenceDraft | undefined {
  const dstSpec = readDst(context)
  const anchor = readAnchor(context, zone)
  const now = secondOf(context.now)
  // A month from 31 January is 28 February, and the month after that 31 March: what counts is the day it was said on, so
  // that day is the anchor, and the first slot lies one interval after it.
  const isAnchoredNow = anchor === null && !context.reader.has('startAt') && now !== null
  const nowWall = isAnchoredNow ? now + zone.offsetAt(now) : 0
  const bounds = readBounds(context, zone, {
    maxRunsMax: MAX_RUNS,
    isStartNeeded: anchor === null,
    ...(isAnchoredNow ? { defaultStart: oneIntervalAfter(nowWall, duration) } : {}),
  })
  const given = anchor ?? bounds?.startAt
  if (bounds === undefined || given === null || given === undefined) return undefined
  const origin: Moment = isAnchoredNow ? { kind: 'wall', at: nowWall } : given
  const path = context.reader.pathOf(anchor === null ? 'startAt' : 'anchor')
  const start = anchorWallOf(context, origin, path, zone)
  if (start === undefined) return undefined
  const rule = new CalendarIntervalRule(start, duration)
  const dst = dstPolicy(dstSpec, 'fixed')
  const counted = isAnchoredNow ? origin : anchor
  const spec = intervalSpec(duration, zone, counted, bounds)
  return {
    spec: dstSpec === undefined ? spec : { ...spec, dst: dstSpec },
    ...localDraft(rule, dst, zone, bounds),
    closest: shortestMs(duration),
    phrase: () => intervalPhrase(duration, counted, zone),
  }
}

function intervalPhrase(duration: Duration, anchor: Moment | null, zone: Zone): string {
  const counted = anchor === null ? '' : `, counted from ${describeMoment(anchor, zone)}`
  return `Every ${describeDuration(duration)}${counted}`
}

function oneIntervalAfter(wall: Wall, duration: Duration): Moment | null {
  const next = new CalendarIntervalRule(wall, duration).next(wall)
  return next === null ? null : { kind: 'wall', at: next }
}

function secondOf(now: number | null): number | null {
  return now === null ? null : Math.floor(now / SECOND_MS) * SECOND_MS
}

/** Null if absent or wrong; what is wrong was told. */
function readAnchor(context: ParseContext, zone: Zone): Moment | null {
  const text = context.reader.text('anchor')
  return (text === undefined ? undefined : readMoment(context, text, 'anchor', zone)) ?? null
}

function intervalSpec(
  duration: Duration,
  zone: Zone,
  anchor: Moment | null,
  bounds: Bounds,
): Extract<CadenceDraft['spec'], { kind: 'interval' }> {
  return {
    kind: 'interval',
    every: formatDuration(duration),
    timezone: zone.name,
    ...(anchor === null ? {} : { anchor: formatMoment(anchor) }),
    ...bounds.spec,
  }
}

const EVERY_EXPECTED = 'an ISO 8601 duration such as PT15M, P1D or P1M, a number of seconds, or R[n]/start/duration'
const EVERY_MAX_MS = 36_525 * DAY_MS
const EVERY_MAX_MONTHS = 1200

function readEvery(context: ParseContext): Duration | undefined {
  const { reader, problems } = context
  const value = reader.value('every')
  if (value === undefined) problems.add('missing_field', 'every', EVERY_EXPECTED, 'nothing')
  else if (typeof value !== 'number' && typeof value !== 'string') {
    problems.add('wrong_type', 'every', EVERY_EXPECTED, quote(value))
  } else {
    const duration = typeof value === 'number' ? seconds(value) : parseDuration(readRepetition(context, value))
    if (duration === undefined) {
      problems.add(
        'syntax',
        'every',
        `${EVERY_EXPECTED} (no sign, a fraction only of seconds, to the millisecond)`,
        quote(value),
      )
    } else if (
      shortestMs(duration) > 0 &&
      shortestMs(duration) <= EVERY_MAX_MS &&
      duration.months <= EVERY_MAX_MONTHS
    ) {
      return duration
    } else {
      problems.add('out_of_range', 'every', 'more than nothing and at most 100 years', quote(value))
    }
  }
  return undefined
}

function seconds(value: number): Duration | undefined {
  const timeMs = Math.round(value * SECOND_MS)
  // Arithmetic on fractions is never exact, but a tenth of a microsecond was not meant.
  const isWhole = !(Math.abs(timeMs - value * SECOND_MS) > 1e-4)
  return isWhole ? { months: 0, days: 0, timeMs } : undefined
}

/** Splits `R[n]/start/duration` into the fields that say the same; returns the duration's text. */
function readRepetition({ reader }: ParseContext, every: string): string {
  const match = /^R(\d{0,9})\/([^/]+)\/([^/]+)$/i.exec(every)
  const [, count = '', start = '', duration = ''] = match ?? []
  if (match === null) return every
  reader.supply('startAt', start, 'every')
  if (count !== '') reader.supply('maxRuns', Number(count), 'every')
  return duration
}
