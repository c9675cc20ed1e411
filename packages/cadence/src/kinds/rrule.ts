import { readBounds } from '../bounds-input.ts'
import { MOMENT_EXPECTED, formatWall, parseMoment } from '../moment-text.ts'
import type { CadenceDraft, ParseContext } from '../parse-context.ts'
import { quote } from '../problem.ts'
import { AmendedRule } from '../rrule/amended-rule.ts'
import type { Amendments } from '../rrule/amended-rule.ts'
import { readContentLines } from '../rrule/content-lines.ts'
import { describeRRule } from '../rrule/rrule-description.ts'
import { parseRRule } from '../rrule/rrule-parser.ts'
import type { RRuleParts } from '../rrule/rrule-parts.ts'
import { createRRuleRule } from '../rrule/rrule-rule.ts'
import { SlotWalk } from '../slot-walk.ts'
import { ascending } from '../sorted-list.ts'
import { repeatsWithinHour } from '../spacing.ts'
import { DAY_MS, HOUR_MS, SECOND_MS, dayOf } from '../wall.ts'
import type { Wall } from '../wall.ts'
import type { Zone } from '../zone.ts'
import { dstPolicy, instantOf, isUnique, momentOf, readDst, readMoment, readZone, wallOf } from '../zoned-input.ts'

const DATES_MAX = 1000

export function readRRule(context: ParseContext): CadenceDraft | undefined {
  const { budget } = context
  const parts = readRule(context)
  const dstSpec = readDst(context)
  const zone = readZone(context)
  const bounds = zone === undefined ? undefined : readBounds(context, zone)
  const start = zone === undefined ? undefined : readStart(context, zone)
  const amendments = zone === undefined ? undefined : readAmendments(context, zone)
  if (!parts || !zone || !bounds || !amendments || start === undefined) return undefined
  const last = parts.until === null ? null : wallOf(parts.until, zone)
  const { rule, closest } = createRRuleRule(parts, start, last, budget)
  const dst = dstPolicy(dstSpec, closest <= HOUR_MS && repeatsWithinHour(rule, start, budget))
  const isAmended = amendments.added.length + amendments.removed.size + amendments.removedDays.size > 0
  const amended = isAmended ? new AmendedRule(rule, amendments) : rule
  return {
    spec: {
      kind: 'rrule',
      rule: parts.text,
      start: formatWall(start),
      timezone: zone.name,
      ...datesSpec('exdates', exdatesOf(amendments)),
      ...datesSpec('rdates', amendments.added.map(formatWall)),
      ...bounds.spec,
      ...(dstSpec === undefined ? {} : { dst: dstSpec }),
    },
    zone,
    dst,
    source: new SlotWalk(amended, zone, dst),
    wallRule: amended,
    from: bounds.from,
    to: Math.min(bounds.to, untilInstant(parts, amendments, zone)),
    maxRuns: bounds.maxRuns,
    closest,
    added: amendments.added,
    phrase: () => describeRRule(parts, start),
  }
}

function readRule({ reader, problems }: ParseContext): RRuleParts | undefined {
  const text = reader.requiredText('rule', 'an RRULE such as FREQ=MONTHLY;BYDAY=1MO')
  const rule = text === undefined ? undefined : readContentLines(reader, text)
  return rule === undefined ? undefined : parseRRule(rule.text, 'rule', problems, rule.position)
}

function readStart(context: ParseContext, zone: Zone): Wall | undefined {
  const { reader, problems, now } = context
  const path = reader.pathOf('start')
  if (!reader.has('start')) {
    if (now !== null) return toSecond(now + zone.offsetAt(now))
    problems.add('missing_field', path, 'a local time such as 2026-01-05T09:00:00', 'nothing')
    return undefined
  }
  const text = reader.text('start')
  const moment = text === undefined ? undefined : readMoment(context, text, path, zone)
  if (moment === undefined) return undefined
  const wall = wallOf(moment, zone)
  if (wall === toSecond(wall)) return wall
  problems.add('out_of_range', path, 'whole seconds', quote(text))
  return undefined
}

function toSecond(wall: Wall): Wall {
  return Math.floor(wall / SECOND_MS) * SECOND_MS
}

function readAmendments(context: ParseContext, zone: Zone): Amendments {
  const removed = new Set<Wall>()
  const removedDays = new Set<number>()
  const added: Wall[] = []
  for (const [index, text] of context.reader.texts('exdates', DATES_MAX).entries()) {
    const written = parseMoment(text)
    if (written?.isDateOnly) removedDays.add(dayOf(written.wall))
    else addTo(removed, readWall(context, text, `${context.reader.pathOf('exdates')}[${index}]`, zone))
  }
  for (const [index, text] of context.reader.texts('rdates', DATES_MAX).entries()) {
    const wall = readWall(context, text, `${context.reader.pathOf('rdates')}[${index}]`, zone)
    if (wall !== undefined) added.push(wall)
  }
  return { added: ascending(added), removed, removedDays }
}

function addTo(set: Set<Wall>, wall: Wall | undefined): void {
  if (wall !== undefined) set.add(wall)
}

/** A local time, or an instant that names one beyond doubt. */
function readWall(context: ParseContext, text: string, path: string, zone: Zone): Wall | undefined {
  const written = parseMoment(text)
  if (written === undefined || written.isDateOnly) {
    context.problems.add('syntax', path, MOMENT_EXPECTED, quote(text))
    return undefined
  }
  const moment = momentOf(context, written, text, path, zone)
  if (moment === undefined) return undefined
  const wall = wallOf(moment, zone)
  if (moment.kind === 'wall' || isUnique(wall, zone)) return wall
  context.problems.add(
    'conflict',
    path,
    'a local time, because this instant lies in an hour that happens twice',
    quote(text),
  )
  return undefined
}

function exdatesOf({ removed, removedDays }: Amendments): string[] {
  const days = [...removedDays].map((day) => formatWall(day * DAY_MS).slice(0, 10))
  return [...days, ...[...removed].map(formatWall)].toSorted()
}

function datesSpec(name: 'exdates' | 'rdates', dates: readonly string[]): { exdates?: readonly string[] } {
  return dates.length === 0 ? {} : { [name]: dates }
}

/** UNTIL as an instant ends the rule on the pass it names; dates added later still count. */
function untilInstant({ until }: RRuleParts, { added }: Amendments, zone: Zone): number {
  if (until?.kind !== 'instant') return Infinity
  const lastAdded = added.at(-1)
  const addedAt = lastAdded === undefined ? -Infinity : instantOf({ kind: 'wall', at: lastAdded }, zone, 'second')
  return Math.max(until.at, addedAt)
}
