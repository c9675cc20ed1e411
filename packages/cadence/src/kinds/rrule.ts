import { BoundedSource } from '../bounded-source.ts'
import { describeRRule } from '../english/rrule-phrase.ts'
import { formatWall } from '../moment-text.ts'
import { anchorWallOf, readMoment, wallOf } from '../moment.ts'
import type { CadenceDraft, ParseContext } from '../parse-context.ts'
import { quote } from '../problem.ts'
import { readRecurrence, recurrenceSpec } from '../recurrence-input.ts'
import { AmendedSource } from '../rrule/amended-source.ts'
import { readContentLines } from '../rrule/content-lines.ts'
import { readExceptions } from '../rrule/exceptions-input.ts'
import type { Exceptions } from '../rrule/exceptions-input.ts'
import { ExcludedRule } from '../rrule/excluded-rule.ts'
import { parseRRule } from '../rrule/rrule-parser.ts'
import type { RRuleParts } from '../rrule/rrule-parts.ts'
import { createRRuleRule } from '../rrule/rrule-rule.ts'
import { formatRRule } from '../rrule/rrule-text.ts'
import type { SlotSource } from '../slot-source.ts'
import { SlotWalk } from '../slot-walk.ts'
import { ascending } from '../sorted-list.ts'
import type { StepBudget } from '../step-budget.ts'
import { WallList } from '../wall-list.ts'
import type { WallRule } from '../wall-rule.ts'
import { DAY_MS, FIRST_INSTANT, SECOND_MS, dayOf } from '../wall.ts'
import type { Wall } from '../wall.ts'
import { UTC } from '../zone.ts'
import type { Zone } from '../zone.ts'
import { dstPolicy } from '../zoned-input.ts'

export function readRRule(context: ParseContext): CadenceDraft | undefined {
  const parts = readRule(context)
  const recurrence = readRecurrence(context)
  const zone = recurrence?.zone ?? UTC
  const start = readStart(context, zone)
  const exceptions = readExceptions(context, zone)
  if (parts === undefined || recurrence === undefined || start === undefined) return undefined
  const { bounds } = recurrence
  const { rule, closest, density } = createRRuleRule(parts, start, lastWall(parts, zone), context.budget)
  const dst = dstPolicy(recurrence.dst, density)
  const excluded = (from: WallRule): WallRule => new ExcludedRule(from, exceptions.removedWalls, exceptions.removedDays)
  const walk = new SlotWalk(excluded(rule), zone, dst)
  const until = parts.until?.kind === 'instant' ? parts.until.at : Infinity
  const addedWalk = new SlotWalk(excluded(new WallList(exceptions.addedWalls)), zone, dst)
  const added = [...slotsOf(addedWalk, context.budget), ...admittedInstants(exceptions, zone, context.budget)]
  return {
    spec: {
      kind: 'rrule',
      rule: formatRRule(parts),
      start: formatWall(start),
      ...exceptions.spec,
      ...recurrenceSpec(recurrence),
    },
    zone,
    source: new AmendedSource(
      [new BoundedSource(walk, until), new WallList(ascending(added))],
      exceptions.removedInstants,
    ),
    local: { rule: excluded(rule), dst },
    from: bounds.from,
    to: bounds.to,
    maxRuns: bounds.maxRuns,
    closest,
    added: ascending(added.map((at) => at + zone.offsetAt(at))),
    phrase: () => describeRRule(parts, start, exceptions),
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
  const wall = moment === undefined ? undefined : anchorWallOf(context, moment, path, zone)
  if (wall === undefined || wall === toSecond(wall)) return wall
  problems.add('out_of_range', path, 'whole seconds', quote(text))
  return undefined
}

function toSecond(wall: Wall): Wall {
  return Math.floor(wall / SECOND_MS) * SECOND_MS
}

/** UNTIL in local time. As an instant it cuts between two passes of an hour, so here it is only a bound not too near. */
function lastWall({ until }: RRuleParts, zone: Zone): Wall | null {
  if (until === null) return null
  return until.kind === 'wall' ? until.at : wallOf(until, zone) + DAY_MS
}

/** Dates added one by one are resolved once, so that asking for the next slot does not look for them years ahead. */
function slotsOf(source: SlotSource, budget: StepBudget): number[] {
  const slots: number[] = []
  for (let slot = source.next(FIRST_INSTANT, budget); slot !== null; slot = source.next(slot, budget)) slots.push(slot)
  return slots
}

// What finding a year of the zone costs the first time.
const OFFSET_STEPS = 2000

/** The instants of RDATE that no date of EXDATE takes out. */
function admittedInstants({ addedInstants, removedDays }: Exceptions, zone: Zone, budget: StepBudget): number[] {
  return addedInstants.filter((at) => {
    if (zone.name !== 'UTC') budget.spend(OFFSET_STEPS)
    return !removedDays.has(dayOf(at + zone.offsetAt(at)))
  })
}
