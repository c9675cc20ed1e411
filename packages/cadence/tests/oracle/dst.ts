import { MINUTE, type Zone } from './zone.ts'

export interface Policy {
  readonly gap: 'shift' | 'skip'
  readonly fold: 'first' | 'second' | 'both'
}

/** All times are more than 60 minutes apart. */
const FIXED_TIME: Policy = { gap: 'shift', fold: 'first' }
/** Some times of a day are 60 minutes or less apart. */
const REPEATING: Policy = { gap: 'shift', fold: 'both' }
/** All times are 60 minutes or less apart, around the clock. */
const CONTINUOUS: Policy = { gap: 'skip', fold: 'both' }

/** Turns wall times into instants by the README's table "Daylight saving changes": ascending, without duplicates. */
export function resolve(walls: Iterable<number>, zone: Zone, policy: Policy): number[] {
  const slots = new Set<number>()
  for (const wall of walls) for (const instant of resolveWall(wall, zone, policy)) slots.add(instant)
  return [...slots].toSorted((a, b) => a - b)
}

function resolveWall(wall: number, zone: Zone, { gap, fold }: Policy): number[] {
  const [first, second] = zone.instantsOf(wall)
  if (first === undefined) return gap === 'shift' ? [endOfGap(wall, zone)] : []
  if (second === undefined) return [first]
  if (fold === 'both') return [first, second]
  return [fold === 'first' ? first : second]
}

function endOfGap(wall: number, zone: Zone): number {
  for (const { at, before, after } of zone.transitions(wall - 3 * 24 * 60 * MINUTE, wall + 3 * 24 * 60 * MINUTE)) {
    if (at + before <= wall && wall < at + after) return at
  }
  throw new Error(`no gap holds ${new Date(wall).toISOString()} in ${zone.name}`)
}

/** The default policy by the distance of neighbouring times on one day. `walls` must reach into a second day. */
export function defaultPolicy(walls: Iterable<number>): Policy {
  const times = [...new Set(walls)].toSorted((a, b) => a - b)
  const pairs = times.slice(1).map((time, index) => ({ before: times[index] ?? 0, time }))
  const isClose = ({ before, time }: { before: number; time: number }) => time - before <= 60 * MINUTE
  if (!pairs.some((pair) => isClose(pair) && isSameDay(pair.before, pair.time))) return FIXED_TIME
  return pairs.every(isClose) ? CONTINUOUS : REPEATING
}

function isSameDay(a: number, b: number): boolean {
  return new Date(a).toISOString().slice(0, 10) === new Date(b).toISOString().slice(0, 10)
}
