import { describeDuration, describeMoment } from '../english/time-phrase.ts'
import { createLocalDraft } from '../input/cadence-draft.ts'
import type { CadenceDraft } from '../input/cadence-draft.ts'
import { foundText } from '../input/found.ts'
import { anchorWallTimeOf, readMoment } from '../input/moment-input.ts'
import type { ParseContext } from '../input/parse-context.ts'
import { readBounds } from '../input/recurrence-input.ts'
import type { Bounds } from '../input/recurrence-input.ts'
import { readDst, readZone, rejectDst } from '../input/zone-input.ts'
import { CADENCE_LIMITS } from '../limits.ts'
import { CalendarIntervalRule } from '../rules/calendar-interval-rule.ts'
import { firstInstantOf, formatMoment } from '../slots/moment.ts'
import type { Moment } from '../slots/moment.ts'
import { ElapsedSource } from '../slots/slot-source.ts'
import { resolveDst } from '../time/dst-policy.ts'
import { formatDuration, isElapsed, parseDuration, shortestMs } from '../time/duration.ts'
import type { Duration } from '../time/duration.ts'
import { DAY_MS, SECOND_MS } from '../time/wall-time.ts'
import type { WallTime } from '../time/wall-time.ts'
import { UTC } from '../time/zone.ts'
import type { Zone } from '../time/zone.ts'

export function parseIntervalCadence(context: ParseContext): CadenceDraft | undefined {
  const duration = readEvery(context)
  const zone = readZone(context)
  if (duration === undefined || zone === undefined) {
    // The other fields are read anyway, so the caller gets their problems too.
    readBounds(context, zone ?? UTC, { maxRunsMax: CADENCE_LIMITS.intervalMaxRuns })
    readDst(context)
    readAnchor(context, zone ?? UTC)
    return undefined
  }
  return isElapsed(duration)
    ? createElapsedDraft(context, duration, zone)
    : createCalendarDraft(context, duration, zone)
}

function createElapsedDraft(context: ParseContext, duration: Duration, zone: Zone): CadenceDraft | undefined {
  rejectDst(context)
  const every = duration.timeMs
  const anchor = readAnchor(context, zone)
  const now = secondOf(context.now)
  const bounds = readBounds(context, zone, {
    maxRunsMax: CADENCE_LIMITS.intervalMaxRuns,
    isStartNeeded: anchor === null,
    // Without a start, "every 15 minutes" comes due for the first time 15 minutes from now.
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
    closestMs: every,
    listedTimes: 0,
    phrase: () => intervalPhrase(duration, anchor, zone),
  }
}

function createCalendarDraft(context: ParseContext, duration: Duration, zone: Zone): CadenceDraft | undefined {
  const dstSpec = readDst(context)
  const anchor = readAnchor(context, zone)
  const now = secondOf(context.now)
  // Without a start the anchor is `now`, and the first slot lies one interval later. Anchoring at the first slot instead
  // would lose the day of month: one month after 31 January is 28 February, and the slot after that must be 31 March.
  const isAnchoredNow = anchor === null && !context.reader.has('startAt') && now !== null
  const nowWall = isAnchoredNow ? now + zone.offsetAt(now) : 0
  const bounds = readBounds(context, zone, {
    isStartNeeded: anchor === null,
    ...(isAnchoredNow ? { defaultStart: oneIntervalAfter(nowWall, duration) } : {}),
  })
  const given = anchor ?? bounds?.startAt
  if (bounds === undefined || given === null || given === undefined) return undefined
  const origin: Moment = isAnchoredNow ? { kind: 'wall', at: nowWall } : given
  const path = context.reader.pathOf(anchor === null ? 'startAt' : 'anchor')
  const start = anchorWallTimeOf(context, origin, path, zone)
  if (start === undefined) return undefined
  const rule = new CalendarIntervalRule(start, duration)
  const dst = resolveDst(dstSpec, 'fixed')
  const counted = isAnchoredNow ? origin : anchor
  const spec = intervalSpec(duration, zone, counted, bounds)
  return {
    spec: dstSpec === undefined ? spec : { ...spec, dst: dstSpec },
    ...createLocalDraft(rule, dst, zone, bounds),
    closestMs: shortestMs(duration),
    listedTimes: 0,
    phrase: () => intervalPhrase(duration, counted, zone),
  }
}

function intervalPhrase(duration: Duration, anchor: Moment | null, zone: Zone): string {
  const counted = anchor === null ? '' : `, counted from ${describeMoment(anchor, zone)}`
  return `Every ${describeDuration(duration)}${counted}`
}

function oneIntervalAfter(wall: WallTime, duration: Duration): Moment | null {
  const next = new CalendarIntervalRule(wall, duration).next(wall)
  return next === null ? null : { kind: 'wall', at: next }
}

function secondOf(now: number | null): number | null {
  return now === null ? null : Math.floor(now / SECOND_MS) * SECOND_MS
}

/** Null if the field is absent or wrong; a wrong one adds a problem. */
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
    problems.add('wrong_type', 'every', EVERY_EXPECTED, foundText(value))
  } else {
    const duration = typeof value === 'number' ? seconds(value) : parseDuration(readRepetition(context, value))
    if (duration === undefined) {
      problems.add(
        'syntax',
        'every',
        `${EVERY_EXPECTED} (no sign, a fraction only of seconds, to the millisecond)`,
        foundText(value),
      )
    } else if (
      shortestMs(duration) > 0 &&
      shortestMs(duration) <= EVERY_MAX_MS &&
      duration.months <= EVERY_MAX_MONTHS
    ) {
      return duration
    } else {
      problems.add('out_of_range', 'every', 'more than 0 and at most 100 years', foundText(value))
    }
  }
  return undefined
}

function seconds(value: number): Duration | undefined {
  const timeMs = Math.round(value * SECOND_MS)
  // Tolerates rounding errors below a tenth of a microsecond; a real fraction of a millisecond is rejected.
  const isWhole = !(Math.abs(timeMs - value * SECOND_MS) > 1e-4)
  return isWhole ? { months: 0, days: 0, timeMs } : undefined
}

/** Sets `startAt` and `maxRuns` from `R[n]/start/duration` and returns the text of the duration. */
function readRepetition({ reader }: ParseContext, every: string): string {
  const match = /^R(\d{0,9})\/([^/]+)\/([^/]+)$/i.exec(every)
  const [, count = '', start = '', duration = ''] = match ?? []
  if (match === null) return every
  reader.supply('startAt', start, 'every')
  if (count !== '') reader.supply('maxRuns', Number(count), 'every')
  return duration
}
