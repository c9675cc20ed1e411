/** How many lanes each kind of target has; `hashtext & 63` in the schema. */
const LANES_PER_KIND = 64

/** The lanes of the kinds that a worker serves. */
export function lanesOf(targetKinds: readonly string[]): string[] {
  return targetKinds.flatMap((kind) => Array.from({ length: LANES_PER_KIND }, (_, lane) => `${kind}.${lane}`))
}

/**
 * Shares the room among the lanes that are due, so that one tenant's herd cannot take it all. With more lanes than room,
 * the first ones get a place each: the caller gives the longest waiting first.
 */
export function shareRoom(lanes: readonly string[], room: number): { lanes: readonly string[]; perLane: number } {
  if (lanes.length === 0) return { lanes, perLane: 0 }
  if (lanes.length >= room) return { lanes: lanes.slice(0, room), perLane: 1 }
  return { lanes, perLane: Math.floor(room / lanes.length) }
}
