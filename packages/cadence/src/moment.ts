import { MOMENT_EXPECTED, formatInstant, formatWall, isRefusal, parseMoment } from './moment-text.ts'
import type { MomentText } from './moment-text.ts'
import type { ParseContext } from './parse-context.ts'
import { quote } from './problem.ts'
import { SlotWalk } from './slot-walk.ts'
import { StepBudget } from './step-budget.ts'
import { WallList } from './wall-list.ts'
import { DAY_MS } from './wall.ts'
import type { Wall } from './wall.ts'
import { findZone } from './zone.ts'
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

// What finding a year of the zone costs the first time.
const OFFSET_STEPS = 2000

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
  context.budget.spend(OFFSET_STEPS)
  const actual = zone.offsetAt(at)
  if (actual === written.offset) return { kind: 'instant', at }
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
