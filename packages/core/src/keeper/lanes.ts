/** How many lanes each kind of target has; `hashtext & 63` in the schema. */
const LANES_PER_KIND = 64

/** The lanes of the kinds that a worker serves. */
export function lanesOf(targetKinds: readonly string[]): string[] {
  return targetKinds.flatMap((kind) => Array.from({ length: LANES_PER_KIND }, (_, lane) => `${kind}.${lane}`))
}

/** Lanes to claim from, and how many of each. */
export interface LaneShare {
  readonly lanes: readonly string[]
  readonly perLane: number
}

/**
 * Splits lanes among those who begin at the same time, so that they do not meet. One lane goes to all of them: who finds a row
 * locked passes over it.
 */
export function splitLanes(lanes: readonly string[], beginners: number): (readonly string[])[] {
  if (lanes.length === 1) return Array.from({ length: beginners }, () => lanes)
  const portions = Array.from({ length: beginners }, (_, n) => lanes.filter((_lane, at) => at % beginners === n))
  return portions.filter((portion) => portion.length > 0)
}

/**
 * Shares the room among the lanes that are due, so that one tenant's herd cannot take it all. With more lanes than room,
 * the first ones get a place each: the caller gives the longest waiting first.
 */
export function shareRoom(lanes: readonly string[], room: number): LaneShare {
  if (lanes.length === 0) return { lanes, perLane: 0 }
  if (lanes.length >= room) return { lanes: lanes.slice(0, room), perLane: 1 }
  return { lanes, perLane: Math.floor(room / lanes.length) }
}
