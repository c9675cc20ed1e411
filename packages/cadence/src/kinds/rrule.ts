import { describeRRule } from '../english/rrule-phrase.ts'
import { createLocalDraft } from '../input/cadence-draft.ts'
import type { CadenceDraft } from '../input/cadence-draft.ts'
import { foundText } from '../input/found.ts'
import { anchorWallTimeOf, readMoment } from '../input/moment-input.ts'
import type { ParseContext } from '../input/parse-context.ts'
import { chargeYear } from '../input/parse-context.ts'
import { readRecurrence, recurrenceSpec } from '../input/recurrence-input.ts'
import { readContentLines } from '../rrule/content-lines.ts'
import { readExceptions } from '../rrule/exceptions-input.ts'
import type { ExceptionDates } from '../rrule/exceptions-input.ts'
import { parseRRule } from '../rrule/rrule-parser.ts'
import { formatRRule } from '../rrule/rrule-parts.ts'
import type { RRuleParts } from '../rrule/rrule-parts.ts'
import { createRRule } from '../rrule/rrule.ts'
import { ascending } from '../rules/sorted-list.ts'
import { ExcludingRule, WallTimeList, WallTimeUnion } from '../rules/wall-time-rule.ts'
import type { WallTimeRule } from '../rules/wall-time-rule.ts'
import { wallTimeOf } from '../slots/moment.ts'
import { MergedSource, BoundedSource } from '../slots/slot-source.ts'
import type { SlotSource } from '../slots/slot-source.ts'
import { SlotWalk } from '../slots/slot-walk.ts'
import { resolveDst } from '../time/dst-policy.ts'
import { formatWallTime } from '../time/moment-text.ts'
import { DAY_MS, FIRST_INSTANT, FIRST_WALL_TIME, SECOND_MS, dayOf } from '../time/wall-time.ts'
import type { WallTime } from '../time/wall-time.ts'
import { UTC } from '../time/zone.ts'
import type { Zone } from '../time/zone.ts'

export function parseRRuleCadence(context: ParseContext): CadenceDraft | undefined {
  const parts = readRule(context)
  const { zone = UTC, recurrence } = readRecurrence(context)
  const start = readStart(context, zone)
  const exceptions = readExceptions(context, zone)
  if (parts === undefined || recurrence === undefined || start === undefined) return undefined
  const { bounds } = recurrence
  const { rule, closestMs, listedTimes, density } = createRRule(parts, start, lastWall(parts, zone), context.budget)
  const dst = resolveDst(recurrence.dst, density)
  const excluded = (from: WallTimeRule): WallTimeRule =>
    new ExcludingRule(from, exceptions.removedWallTimes, exceptions.removedDays)
  const until = parts.until?.kind === 'instant' ? parts.until.at : Infinity
  const walk = new BoundedSource(new SlotWalk(excluded(rule), zone, dst), until)
  const addedWallTimes = new WallTimeList(exceptions.addedWallTimes)
  const added = resolveAddedSlots(context, exceptions, zone, new SlotWalk(excluded(addedWallTimes), zone, dst))
  return {
    spec: {
      kind: 'rrule',
      rule: formatRRule(parts),
      start: formatWallTime(start),
      ...exceptions.spec,
      ...recurrenceSpec(recurrence),
    },
    ...createLocalDraft(excluded(new WallTimeUnion(rule, addedWallTimes)), dst, zone, bounds),
    source: new MergedSource([walk, new WallTimeList(added)], exceptions.removedInstants),
    closestMs,
    listedTimes,
    added,
    phrase: () => describeRRule(parts, start, exceptions),
  }
}

function readRule({ reader, problems }: ParseContext): RRuleParts | undefined {
  const text = reader.requiredText('rule', 'an RRULE such as FREQ=MONTHLY;BYDAY=1MO')
  const rule = text === undefined ? undefined : readContentLines(reader, text)
  return rule === undefined ? undefined : parseRRule(rule.text, 'rule', problems, rule.position)
}

function readStart(context: ParseContext, zone: Zone): WallTime | undefined {
  const { reader, problems, now } = context
  const path = reader.pathOf('start')
  if (!reader.has('start')) {
    if (now !== null) return toSecond(now + zone.offsetAt(now))
    problems.add('missing_field', path, 'a local time such as 2026-01-05T09:00:00', 'nothing')
    return undefined
  }
  const text = reader.text('start')
  const moment = text === undefined ? undefined : readMoment(context, text, path, zone)
  const wall = moment === undefined ? undefined : anchorWallTimeOf(context, moment, path, zone)
  if (wall === undefined) return undefined
  if (wall === toSecond(wall) && wall >= FIRST_WALL_TIME) return wall
  problems.add('out_of_range', path, 'whole seconds, in local time from 1970 on', foundText(text))
  return undefined
}

function toSecond(wall: WallTime): WallTime {
  return Math.floor(wall / SECOND_MS) * SECOND_MS
}

/**
 * UNTIL as a wall time; null without UNTIL. An instant can end a rule between the two passes of a repeated hour. So for an
 * instant this is a later bound, and `parseRRuleCadence` applies the instant itself to the slots.
 */
function lastWall({ until }: RRuleParts, zone: Zone): WallTime | null {
  if (until === null) return null
  return until.kind === 'wall' ? until.at : wallTimeOf(until, zone) + DAY_MS
}

/**
 * The slots from `rdates` that `exdates` does not remove, ascending. They are resolved once here, so a search for the next
 * slot need not look for them years ahead.
 */
function resolveAddedSlots(context: ParseContext, exceptions: ExceptionDates, zone: Zone, walk: SlotSource): number[] {
  const { addedInstants, removedDays, removedWallTimes, removedInstants } = exceptions
  const slots: number[] = []
  const { budget } = context
  for (let at = walk.next(FIRST_INSTANT - 1, budget); at !== null; at = walk.next(at, budget)) slots.push(at)
  for (const at of addedInstants) {
    if (zone !== UTC) chargeYear(context, at)
    const wall = at + zone.offsetAt(at)
    if (!removedWallTimes.has(wall) && !removedDays.has(dayOf(wall))) slots.push(at)
  }
  return ascending(slots.filter((at) => !removedInstants.has(at)))
}
