export { lanesOf } from '../policy/lane-names.ts'

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
 * Shares a worker's room among the lanes that are due, so that neither one tenant's herd nor a storm of retries takes it all.
 * With more lanes than room some get one place each: those that had their turn the longest ago, or never. A full worker frees its
 * places one by one, and without turns the lane with the oldest backlog would get every one of them.
 */
export class RoomShares {
  #turn = 0
  /** When a lane last had a turn in which others had none. One entry per lane at most. */
  readonly #turnOf = new Map<string, number>()

  /** @param lanes the longest waiting first */
  share<Lane extends { readonly source: string; readonly lane: string }>(
    lanes: readonly Lane[],
    room: number,
  ): LaneShare<Lane> {
    if (lanes.length === 0) return { lanes, perLane: 0 }
    if (lanes.length <= room) return { lanes, perLane: Math.floor(room / lanes.length) }
    const lastTurn = (lane: Lane): number => this.#turnOf.get(nameOf(lane)) ?? 0
    const chosen = lanes.toSorted((a, b) => lastTurn(a) - lastTurn(b)).slice(0, room)
    this.#turn += 1
    for (const lane of chosen) this.#turnOf.set(nameOf(lane), this.#turn)
    return { lanes: chosen, perLane: 1 }
  }
}

function nameOf({ source, lane }: { readonly source: string; readonly lane: string }): string {
  return `${source} ${lane}`
}
