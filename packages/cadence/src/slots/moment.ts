import { StepBudget } from '../rules/step-budget.ts'
import { WallTimeList } from '../rules/wall-time-rule.ts'
import { formatInstant, formatWallTime } from '../time/moment-text.ts'
import { DAY_MS } from '../time/wall-time.ts'
import type { WallTime } from '../time/wall-time.ts'
import type { Zone } from '../time/zone.ts'
import { SlotWalk } from './slot-walk.ts'

/** A point in time that a cadence names: an instant, or a wall time in the cadence's zone. */
export type Moment =
  | { readonly kind: 'instant'; readonly at: number }
  | { readonly kind: 'wall'; readonly at: WallTime }

export function formatMoment({ kind, at }: Moment): string {
  return kind === 'instant' ? formatInstant(at) : formatWallTime(at)
}

export function wallTimeOf({ kind, at }: Moment, zone: Zone): WallTime {
  return kind === 'wall' ? at : at + zone.offsetAt(at)
}

/**
 * The first instant at or after a moment. For a wall time that a gap skips, this is the end of the gap; for one that
 * happens twice, the first pass.
 */
export function firstInstantOf({ kind, at }: Moment, zone: Zone): number {
  return kind === 'instant' ? at : resolveWallTime(at, zone, 'first')
}

/**
 * The last instant at or before a moment. For a wall time that a gap skips, this is the last millisecond before the gap;
 * for one that happens twice, the second pass.
 */
export function lastInstantOf({ kind, at }: Moment, zone: Zone): number {
  if (kind === 'instant') return at
  const instant = resolveWallTime(at, zone, 'second')
  return instant + zone.offsetAt(instant) === at ? instant : instant - 1
}

/** True if the wall time of an instant happens twice in the zone. */
export function isRepeated(instant: number, zone: Zone): boolean {
  const wall = instant + zone.offsetAt(instant)
  return resolveWallTime(wall, zone, 'first') !== resolveWallTime(wall, zone, 'second')
}

// The most search steps to resolve one wall time: enough for the few segments around it.
const RESOLVE_STEPS = 20_000

function resolveWallTime(wall: WallTime, zone: Zone, fold: 'first' | 'second'): number {
  const walk = new SlotWalk(new WallTimeList([wall]), zone, { gap: 'shift', fold })
  return walk.next(wall - 2 * DAY_MS, new StepBudget(RESOLVE_STEPS)) ?? wall
}
