import { WEEKDAYS } from '../english/words.ts'
import { createLocalDraft } from '../input/cadence-draft.ts'
import type { CadenceDraft } from '../input/cadence-draft.ts'
import { foundText } from '../input/found.ts'
import type { ParseContext } from '../input/parse-context.ts'
import { readRecurrence, recurrenceSpec } from '../input/recurrence-input.ts'
import type { Bounds } from '../input/recurrence-input.ts'
import { parseRRule } from '../rrule/rrule-parser.ts'
import { WEEKDAY_CODES } from '../rrule/rrule-parts.ts'
import { createRRule } from '../rrule/rrule.ts'
import { wallTimeOf } from '../slots/moment.ts'
import { FREQUENCIES } from '../spec.ts'
import type { Frequency } from '../spec.ts'
import { resolveDst } from '../time/dst-policy.ts'
import { formatDate, formatWallTime, isMomentProblem, parseMoment } from '../time/moment-text.ts'
import { DAY_MS, FIRST_WALL_TIME, HOUR_MS, MINUTE_MS, dayOf, modulo, weekdayOf } from '../time/wall-time.ts'
import type { WallTime } from '../time/wall-time.ts'
import type { Zone } from '../time/zone.ts'

/** Each frequency is a shorthand for an RRULE. `weekday` is the RRULE code of the day, such as `MO`. */
const RULES: Readonly<Record<Frequency, (weekday: string) => string>> = {
  weekly: (weekday) => `FREQ=WEEKLY;BYDAY=${weekday}`,
  biweekly: (weekday) => `FREQ=WEEKLY;INTERVAL=2;BYDAY=${weekday}`,
  monthly: (weekday) => `FREQ=MONTHLY;BYDAY=1${weekday}`,
}

const PHRASES: Readonly<Record<Frequency, (weekday: string) => string>> = {
  weekly: (weekday) => `Every ${weekday}`,
  biweekly: (weekday) => `Every other ${weekday}`,
  monthly: (weekday) => `On the first ${weekday} of every month`,
}

const TIME_EXPECTED = 'a time such as 09:00'

export function parseFrequencyCadence(context: ParseContext): CadenceDraft | undefined {
  const frequency = readName(context)
  const dayOfWeek = readDayOfWeek(context)
  const timeOfDay = readTimeOfDay(context)
  const { recurrence } = readRecurrence(context)
  if (frequency === undefined || dayOfWeek === undefined || timeOfDay === undefined) return undefined
  if (recurrence === undefined) return undefined
  const { zone, bounds } = recurrence
  const anchor = readAnchor(context, frequency, zone, bounds)
  const parts = parseRRule(RULES[frequency](WEEKDAY_CODES[dayOfWeek] ?? ''), 'frequency', context.problems)
  if (anchor === undefined || parts === undefined) return undefined
  const first = firstSlotFrom(anchor, dayOfWeek, timeOfDay)
  // A start before the first wall time moves two weeks later, so that a biweekly cadence keeps its weeks.
  const start = first < FIRST_WALL_TIME ? first + 14 * DAY_MS : first
  const { rule, closestMs, listedTimes } = createRRule(parts, start, null, context.budget)
  const dst = resolveDst(recurrence.dst, 'fixed')
  const time = formatWallTime(timeOfDay).slice(11, 16)
  return {
    spec: {
      kind: 'frequency',
      frequency,
      dayOfWeek,
      timeOfDay: time,
      ...(frequency === 'biweekly' ? { anchor: formatDate(start) } : {}),
      ...recurrenceSpec(recurrence),
    },
    ...createLocalDraft(rule, dst, zone, bounds),
    closestMs,
    listedTimes,
    phrase: () => `${PHRASES[frequency](WEEKDAYS[dayOfWeek] ?? '')} at ${time}`,
  }
}

function readName({ reader, problems }: ParseContext): Frequency | undefined {
  if (!reader.has('frequency')) {
    problems.add('missing_field', 'frequency', `one of ${FREQUENCIES.join(', ')}`, 'nothing')
  }
  return reader.choice('frequency', FREQUENCIES)
}

function readDayOfWeek({ reader, problems }: ParseContext): number | undefined {
  if (!reader.has('dayOfWeek')) problems.add('missing_field', 'dayOfWeek', 'a day from 0 (Sunday) to 6', 'nothing')
  return reader.integer('dayOfWeek', 0, 6)
}

function readTimeOfDay({ reader, problems }: ParseContext): number | undefined {
  const text = reader.requiredText('timeOfDay', TIME_EXPECTED)
  if (text === undefined) return undefined
  const match = /^([01]\d|2[0-3]):([0-5]\d)$/.exec(text)
  if (match !== null) return Number(match[1]) * HOUR_MS + Number(match[2]) * MINUTE_MS
  problems.add('syntax', 'timeOfDay', TIME_EXPECTED, foundText(text))
  return undefined
}

/** The wall time from which to search the first slot: `anchor`, else `startAt`, else `now`; 0 unless biweekly. */
function readAnchor(
  { reader, problems, now }: ParseContext,
  frequency: Frequency,
  zone: Zone,
  bounds: Bounds,
): WallTime | undefined {
  const text = reader.text('anchor')
  if (frequency !== 'biweekly') {
    // Weekly and monthly slots do not depend on where counting starts.
    if (reader.has('anchor')) {
      problems.add('conflict', 'anchor', 'no anchor, because only biweekly needs one', foundText(text))
    }
    return 0
  }
  if (text !== undefined) {
    const written = parseMoment(text)
    if (!isMomentProblem(written) && written.isDateOnly) return written.wall
    const isDay = isMomentProblem(written) && written.code === 'out_of_range'
    const expected = isDay ? written.expected : 'a local date such as 2026-01-05'
    problems.add(isDay ? 'out_of_range' : 'syntax', 'anchor', expected, foundText(text))
    return undefined
  }
  if (reader.has('anchor')) return undefined
  const origin = bounds.startAt ?? (now === null ? null : { kind: 'instant' as const, at: now })
  if (origin !== null) return wallTimeOf(origin, zone)
  problems.add('missing_field', 'anchor', 'a local date to count the two weeks from', 'nothing')
  return undefined
}

/** The first slot at or after a wall time. */
function firstSlotFrom(wall: WallTime, dayOfWeek: number, timeOfDay: number): WallTime {
  const day = dayOf(wall) + modulo(dayOfWeek - weekdayOf(dayOf(wall)), 7)
  const slot = day * DAY_MS + timeOfDay
  return slot >= wall ? slot : slot + 7 * DAY_MS
}
