/** How many lanes each kind of target has; `lane_of` in the schema knows the same number, and a test compares. */
const LANES_PER_KIND = 64

/** The lanes of the kinds that a worker serves. */
export function lanesOf(targetKinds: readonly string[]): string[] {
  return targetKinds.flatMap((kind) => Array.from({ length: LANES_PER_KIND }, (_, lane) => `${kind}.${lane}`))
}

/** Lanes to claim from, and how many of each. */
export interface LaneShare<Lane> {
  readonly lanes: readonly Lane[]
  readonly perLane: number
}

/**
 * Splits lanes among those who begin at the same time, so that they do not meet. One lane goes to all of them: who finds a row
 * locked passes over it.
 */
export function splitLanes<Lane>(lanes: readonly Lane[], beginners: number): (readonly Lane[])[] {
  if (lanes.length === 1) return Array.from({ length: beginners }, () => lanes)
  const portions = Array.from({ length: beginners }, (_, n) => lanes.filter((_lane, at) => at % beginners === n))
  return portions.filter((portion) => portion.length > 0)
}

/**
 * Shares the room among the lanes that are due, so that one tenant's herd cannot take it all. With more lanes than room,
 * the first ones get a place each: the caller gives the longest waiting first.
 */
export function shareRoom<Lane>(lanes: readonly Lane[], room: number): LaneShare<Lane> {
  if (lanes.length === 0) return { lanes, perLane: 0 }
  if (lanes.length >= room) return { lanes: lanes.slice(0, room), perLane: 1 }
  return { lanes, perLane: Math.floor(room / lanes.length) }
}
