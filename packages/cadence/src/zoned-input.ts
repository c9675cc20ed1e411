import { ELAPSED, ONCE_A_DAY } from './dst-policy.ts'
import type { DstPolicy, FoldPolicy, GapPolicy } from './dst-policy.ts'
import { MOMENT_EXPECTED, formatInstant, formatWall, parseMoment } from './moment-text.ts'
import type { MomentText } from './moment-text.ts'
import type { ParseContext } from './parse-context.ts'
import { quote } from './problem.ts'
import { SlotWalk } from './slot-walk.ts'
import type { DstSpec } from './spec.ts'
import { StepBudget } from './step-budget.ts'
import { WallList } from './wall-list.ts'
import { DAY_MS, FIRST_WALL, LAST_WALL } from './wall.ts'
import type { Wall } from './wall.ts'
import { findZone } from './zone.ts'
import type { Zone } from './zone.ts'

/** The zone of a cadence; undefined, with a problem, if its name is none. */
export function readZone({ reader, problems }: ParseContext, fallback = 'UTC'): Zone | undefined {
  const name = reader.has('timezone') ? reader.text('timezone') : fallback
  if (name === undefined) return undefined
  const zone = findZone(name)
  if (zone === undefined) {
    problems.add('unknown_timezone', reader.pathOf('timezone'), 'an IANA time zone such as Europe/Madrid', quote(name))
  }
  return zone
}

const GAPS: readonly GapPolicy[] = ['shift', 'skip']
const FOLDS: readonly FoldPolicy[] = ['first', 'second', 'both']

/** The policy as given, for the spec. */
export function readDst({ reader }: ParseContext, folds: readonly FoldPolicy[] = FOLDS): DstSpec | undefined {
  const dst = reader.object('dst')
  if (dst === undefined) return undefined
  const gap = dst.choice('gap', GAPS)
  const fold = dst.choice('fold', folds)
  dst.refuseOthers()
  return { ...(gap === undefined ? {} : { gap }), ...(fold === undefined ? {} : { fold }) }
}

/** The policy in force. */
export function dstPolicy(spec: DstSpec | undefined, repeatsWithinHour: boolean): DstPolicy {
  return { ...(repeatsWithinHour ? ELAPSED : ONCE_A_DAY), ...spec }
}

/** A moment of a cadence: an instant, or a local time in the cadence's zone. */
export type Moment = { readonly kind: 'instant'; readonly at: number } | { readonly kind: 'wall'; readonly at: Wall }

/** Reads a date and time in the zone of the cadence; undefined, with a problem, if it is none. */
export function readMoment(context: ParseContext, text: string, path: string, zone: Zone): Moment | undefined {
  const written = parseMoment(text)
  if (written === undefined || written.isDateOnly) {
    context.problems.add('syntax', path, MOMENT_EXPECTED, quote(text))
    return undefined
  }
  return momentOf(context, written, text, path, zone)
}

export function momentOf(
  { problems }: ParseContext,
  written: MomentText,
  text: string,
  path: string,
  zone: Zone,
): Moment | undefined {
  if (written.zoneName !== null) {
    const named = findZone(written.zoneName)
    if (named !== zone) {
      const code = named === undefined ? 'unknown_timezone' : 'conflict'
      problems.add(code, path, `the cadence's own zone, ${zone.name}`, quote(written.zoneName))
      return undefined
    }
  }
  if (written.offset === null) return { kind: 'wall', at: written.wall }
  const at = written.wall - written.offset
  if (at < FIRST_WALL || at > LAST_WALL) {
    problems.add('out_of_range', path, 'a year from 1970 to 9999', quote(text))
    return undefined
  }
  if (written.zoneName !== null && !written.isZulu && zone.offsetAt(at) !== written.offset) {
    const actual = formatWall(at + zone.offsetAt(at))
    problems.add('conflict', path, `the offset that ${zone.name} has at that time (${actual} there)`, quote(text))
    return undefined
  }
  return { kind: 'instant', at }
}

export function formatMoment({ kind, at }: Moment): string {
  return kind === 'instant' ? formatInstant(at) : formatWall(at)
}

// One local time lies at most a few segments away.
const RESOLVE_STEPS = 20_000

/** The instant of a local time. In a gap the first instant after it; in a fold the pass that is asked for. */
export function instantOf({ kind, at }: Moment, zone: Zone, fold: 'first' | 'second'): number {
  if (kind === 'instant') return at
  const walk = new SlotWalk(new WallList([at]), zone, { gap: 'shift', fold })
  return walk.next(at - 2 * DAY_MS, new StepBudget(RESOLVE_STEPS)) ?? at
}

/** Whether a local time happens exactly once. */
export function isUnique(wall: Wall, zone: Zone): boolean {
  const first = instantOf({ kind: 'wall', at: wall }, zone, 'first')
  return first === instantOf({ kind: 'wall', at: wall }, zone, 'second') && first + zone.offsetAt(first) === wall
}

/** The local time of a moment. */
export function wallOf({ kind, at }: Moment, zone: Zone): Wall {
  return kind === 'wall' ? at : at + zone.offsetAt(at)
}
