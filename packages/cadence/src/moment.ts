import { MOMENT_EXPECTED, formatInstant, formatWall, isRefusal, parseMoment } from './moment-text.ts'
import type { MomentText } from './moment-text.ts'
import type { ParseContext } from './parse-context.ts'
import { quote } from './problem.ts'
import { SlotWalk } from './slot-walk.ts'
import { StepBudget } from './step-budget.ts'
import { WallList } from './wall-list.ts'
import { DAY_MS, MINUTE_MS, dateOf, dayOf } from './wall.ts'
import type { Wall } from './wall.ts'
import { STEPS_PER_ZONE_YEAR, findZone } from './zone.ts'
import type { Zone } from './zone.ts'

/** A moment of a cadence: an instant, or a local time in the cadence's zone. */
export type Moment = { readonly kind: 'instant'; readonly at: number } | { readonly kind: 'wall'; readonly at: Wall }

/** Reads a date and time in the zone of the cadence; undefined, with a problem, if it is none. */
export function readMoment(context: ParseContext, text: string, path: string, zone: Zone): Moment | undefined {
  const { problems } = context
  const written = parseMoment(text)
  if (isRefusal(written)) problems.add(written.code, path, written.expected, quote(text))
  else if (written.isDateOnly) problems.add('syntax', path, MOMENT_EXPECTED, quote(text))
  else return momentOf(context, written, text, path, zone)
  return undefined
}

/** Pays for the zone's year around an instant, once per input: a hostile list of dates may name thousands of years. */
export function chargeYear({ budget, chargedYears }: ParseContext, instant: number): void {
  const { year } = dateOf(dayOf(instant))
  if (!chargedYears.has(year)) budget.spend(STEPS_PER_ZONE_YEAR)
  chargedYears.add(year)
}

/** A written moment in the zone of the cadence, if it fits there. */
function momentOf(
  context: ParseContext,
  written: MomentText,
  text: string,
  path: string,
  zone: Zone,
): Moment | undefined {
  if (written.zoneName !== null && !isZone(context, written.zoneName, path, zone)) return undefined
  if (written.offset === null) return { kind: 'wall', at: written.wall }
  const at = written.wall - written.offset
  if (written.zoneName === null || written.isZulu) return { kind: 'instant', at }
  chargeYear(context, at)
  const actual = zone.offsetAt(at)
  // RFC 9557 writes offsets to the minute; a few old ones had seconds.
  if (Math.round(actual / MINUTE_MS) * MINUTE_MS === written.offset) {
    return { kind: 'instant', at: written.wall - actual }
  }
  const expected = `the offset that ${zone.name} has then (the clocks there show ${formatWall(at + actual)})`
  context.problems.add('conflict', path, expected, quote(text))
  return undefined
}

function isZone({ problems }: ParseContext, name: string, path: string, zone: Zone): boolean {
  const named = findZone(name)
  if (named === zone) return true
  if (named === undefined) problems.add('unknown_timezone', path, 'an IANA time zone in brackets', quote(name))
  else problems.add('conflict', path, `the cadence's own zone, ${zone.name}`, quote(name))
  return false
}

export function formatMoment({ kind, at }: Moment): string {
  return kind === 'instant' ? formatInstant(at) : formatWall(at)
}

/** The first instant that is not before a moment. */
export function firstInstantOf({ kind, at }: Moment, zone: Zone): number {
  return kind === 'instant' ? at : resolve(at, zone, 'first')
}

/** The last instant that is not after a moment: before a gap that hides it, on the second pass of a fold. */
export function lastInstantOf({ kind, at }: Moment, zone: Zone): number {
  if (kind === 'instant') return at
  const instant = resolve(at, zone, 'second')
  return instant + zone.offsetAt(instant) === at ? instant : instant - 1
}

// One local time lies a few segments away at most.
const RESOLVE_STEPS = 20_000

function resolve(wall: Wall, zone: Zone, fold: 'first' | 'second'): number {
  const walk = new SlotWalk(new WallList([wall]), zone, { gap: 'shift', fold })
  return walk.next(wall - 2 * DAY_MS, new StepBudget(RESOLVE_STEPS)) ?? wall
}

/** The local time of a moment. */
export function wallOf({ kind, at }: Moment, zone: Zone): Wall {
  return kind === 'wall' ? at : at + zone.offsetAt(at)
}

/** The local time of a moment that a rule is anchored at; undefined, with a problem, if that time happens twice. */
export function anchorWallOf({ problems }: ParseContext, moment: Moment, path: string, zone: Zone): Wall | undefined {
  const wall = wallOf(moment, zone)
  if (moment.kind === 'wall' || resolve(wall, zone, 'first') === resolve(wall, zone, 'second')) return wall
  const expected = 'a local time (and dst.fold), because this instant lies in an hour that happens twice'
  problems.add('conflict', path, expected, formatInstant(moment.at))
  return undefined
}
