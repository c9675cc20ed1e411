import { BoundedSource } from '../bounded-source.ts'
import { describeRRule } from '../english/rrule-phrase.ts'
import { localDraft } from '../local-draft.ts'
import { formatWall } from '../moment-text.ts'
import { anchorWallOf, chargeYear, readMoment, wallOf } from '../moment.ts'
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
import { WallList } from '../wall-list.ts'
import type { WallRule } from '../wall-rule.ts'
import { WallUnion } from '../wall-union.ts'
import { DAY_MS, FIRST_INSTANT, FIRST_WALL, SECOND_MS, dayOf } from '../wall.ts'
import type { Wall } from '../wall.ts'
import { UTC } from '../zone.ts'
import type { Zone } from '../zone.ts'
import { dstPolicy } from '../zoned-input.ts'

export function readRRule(context: ParseContext): CadenceDraft | undefined {
  const parts = readRule(context)
  const { zone = UTC, recurrence } = readRecurrence(context)
  const start = readStart(context, zone)
  const exceptions = readExceptions(context, zone)
  if (parts === undefined || recurrence === undefined || start === undefined) return undefined
  const { bounds } = recurrence
  const { rule, closest, density } = createRRuleRule(parts, start, lastWall(parts, zone), context.budget)
  const dst = dstPolicy(recurrence.dst, density)
  const excluded = (from: WallRule): WallRule => new ExcludedRule(from, exceptions.removedWalls, exceptions.removedDays)
  const until = parts.until?.kind === 'instant' ? parts.until.at : Infinity
  const walk = new BoundedSource(new SlotWalk(excluded(rule), zone, dst), until)
  const addedWalls = new WallList(exceptions.addedWalls)
  const added = admitted(context, exceptions, zone, new SlotWalk(excluded(addedWalls), zone, dst))
  return {
    spec: {
      kind: 'rrule',
      rule: formatRRule(parts),
      start: formatWall(start),
      ...exceptions.spec,
      ...recurrenceSpec(recurrence),
    },
    ...localDraft(excluded(new WallUnion(rule, addedWalls)), dst, zone, bounds),
    source: new AmendedSource([walk, new WallList(added)], exceptions.removedInstants),
    closest,
    added,
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
  if (wall === undefined) return undefined
  if (wall === toSecond(wall) && wall >= FIRST_WALL) return wall
  problems.add('out_of_range', path, 'whole seconds, in local time from 1970 on', quote(text))
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

/**
 * The slots that were added one by one and not taken out again, ascending. They are resolved once, so that asking for the
 * next slot does not look for them years ahead.
 */
function admitted(context: ParseContext, exceptions: Exceptions, zone: Zone, walk: SlotSource): number[] {
  const { addedInstants, removedDays, removedWalls, removedInstants } = exceptions
  const slots: number[] = []
  const { budget } = context
  for (let at = walk.next(FIRST_INSTANT - 1, budget); at !== null; at = walk.next(at, budget)) slots.push(at)
  for (const at of addedInstants) {
    if (zone !== UTC) chargeYear(context, at)
    const wall = at + zone.offsetAt(at)
    if (!removedWalls.has(wall) && !removedDays.has(dayOf(wall))) slots.push(at)
  }
  return ascending(slots.filter((at) => !removedInstants.has(at)))
}
