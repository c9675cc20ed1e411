import { readBounds } from '../bounds-input.ts'
import type { Bounds } from '../bounds-input.ts'
import { formatWall, parseMoment } from '../moment-text.ts'
import type { CadenceDraft, ParseContext } from '../parse-context.ts'
import { quote } from '../problem.ts'
import { parseRRule } from '../rrule/rrule-parser.ts'
import { WEEKDAY_CODES } from '../rrule/rrule-parts.ts'
import { createRRuleRule } from '../rrule/rrule-rule.ts'
import { SlotWalk } from '../slot-walk.ts'
import type { FrequencySpec } from '../spec.ts'
import { DAY_MS, HOUR_MS, MINUTE_MS, dayOf, modulo, weekdayOf } from '../wall.ts'
import type { Wall } from '../wall.ts'
import { WEEKDAYS } from '../weekday-names.ts'
import type { Zone } from '../zone.ts'
import { dstPolicy, readDst, readZone, wallOf } from '../zoned-input.ts'

type Frequency = FrequencySpec['frequency']

const FREQUENCIES: readonly Frequency[] = ['weekly', 'biweekly', 'monthly']

/** Each frequency is an RRULE by another name. */
const RULES: Readonly<Record<Frequency, (day: string) => string>> = {
  weekly: (day) => `FREQ=WEEKLY;BYDAY=${day}`,
  biweekly: (day) => `FREQ=WEEKLY;INTERVAL=2;BYDAY=${day}`,
  monthly: (day) => `FREQ=MONTHLY;BYDAY=1${day}`,
}

const PHRASES: Readonly<Record<Frequency, (day: string) => string>> = {
  weekly: (day) => `Every ${day}`,
  biweekly: (day) => `Every other ${day}`,
  monthly: (day) => `On the first ${day} of every month`,
}

export function readFrequency(context: ParseContext): CadenceDraft | undefined {
  const { reader, problems, budget } = context
  for (const name of ['frequency', 'dayOfWeek', 'timeOfDay']) {
    if (!reader.has(name)) problems.add('missing_field', name, EXPECTED[name] ?? '', 'nothing')
  }
  const frequency = reader.choice('frequency', FREQUENCIES)
  const dayOfWeek = reader.integer('dayOfWeek', 0, 6)
  const timeOfDay = readTimeOfDay(context)
  const dstSpec = readDst(context)
  const zone = readZone(context)
  const bounds = zone === undefined ? undefined : readBounds(context, zone)
  const anchorText = reader.text('anchor')
  if (frequency === undefined || dayOfWeek === undefined || timeOfDay === undefined) return undefined
  if (zone === undefined || bounds === undefined) return undefined
  if (frequency !== 'biweekly' && reader.has('anchor')) {
    problems.add('conflict', 'anchor', 'an anchor only where the frequency is biweekly', quote(anchorText))
  }
  const start =
    frequency === 'biweekly' ? readAnchor(context, anchorText, zone, bounds, dayOfWeek, timeOfDay) : timeOfDay
  const parts = parseRRule(RULES[frequency](WEEKDAY_CODES[dayOfWeek] ?? ''), 'frequency', problems)
  if (start === undefined || parts === undefined) return undefined
  const { rule, closest } = createRRuleRule(parts, start, null, budget)
  const dst = dstPolicy(dstSpec, false)
  const time = formatWall(timeOfDay).slice(11, 16)
  return {
    spec: {
      kind: 'frequency',
      frequency,
      dayOfWeek,
      timeOfDay: time,
      timezone: zone.name,
      ...(frequency === 'biweekly' ? { anchor: formatWall(start).slice(0, 10) } : {}),
      ...bounds.spec,
      ...(dstSpec === undefined ? {} : { dst: dstSpec }),
    },
    zone,
    dst,
    source: new SlotWalk(rule, zone, dst),
    wallRule: rule,
    from: bounds.from,
    to: bounds.to,
    maxRuns: bounds.maxRuns,
    closest,
    added: [],
    phrase: () => `${PHRASES[frequency](WEEKDAYS[dayOfWeek] ?? '')} at ${time}`,
  }
}

const EXPECTED: Readonly<Record<string, string>> = {
  frequency: `one of ${FREQUENCIES.join(', ')}`,
  dayOfWeek: 'a whole number from 0 (Sunday) to 6',
  timeOfDay: 'a time such as 09:00',
}

function readTimeOfDay({ reader, problems }: ParseContext): number | undefined {
  const text = reader.text('timeOfDay')
  if (text === undefined) return undefined
  const match = /^([01]\d|2[0-3]):([0-5]\d)$/.exec(text)
  if (match !== null) return Number(match[1]) * HOUR_MS + Number(match[2]) * MINUTE_MS
  problems.add('syntax', 'timeOfDay', EXPECTED['timeOfDay'] ?? '', quote(text))
  return undefined
}

/** The first such weekday on or after the anchor or, without one, the first slot from the start or from creation on. */
function readAnchor(
  { reader, problems, now }: ParseContext,
  text: string | undefined,
  zone: Zone,
  bounds: Bounds,
  dayOfWeek: number,
  timeOfDay: number,
): Wall | undefined {
  if (reader.has('anchor')) {
    const written = text === undefined ? undefined : parseMoment(text)
    if (written?.isDateOnly) return onWeekday(written.wall, dayOfWeek, timeOfDay)
    if (text !== undefined) problems.add('syntax', 'anchor', 'a local date such as 2026-01-05', quote(text))
    return undefined
  }
  const origin = bounds.startAt ?? (now === null ? null : { kind: 'instant' as const, at: now })
  if (origin === null) {
    problems.add('missing_field', 'anchor', 'a local date to count the two weeks from', 'nothing')
    return undefined
  }
  return onWeekday(wallOf(origin, zone), dayOfWeek, timeOfDay)
}

function onWeekday(wall: Wall, dayOfWeek: number, timeOfDay: number): Wall {
  const day = dayOf(wall) + modulo(dayOfWeek - weekdayOf(dayOf(wall)), 7)
  const slot = day * DAY_MS + timeOfDay
  return slot >= wall ? slot : slot + 7 * DAY_MS
}
