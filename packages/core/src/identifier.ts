import { randomBytes } from 'node:crypto'

import { v7 } from 'uuid'

const BYTES = 16
const SEQUENCES = 2 ** 31
const RESERVE_BYTES = 4096

let reserve = randomBytes(RESERVE_BYTES)

/**
 * A UUIDv7 of an instant that Postgres named, so that ids sort by the database's clock and index pages fill in order,
 * whatever a worker's own clock says.
 */
export function identifierAt(at: number): string {
  return v7({ msecs: at, random: takeRandom() })
}

/** Several of one instant, which sort in their order. */
export function identifiersAt(at: number, count: number): string[] {
  const first = takeRandom().readUInt32BE(0) % (SEQUENCES - count)
  return Array.from({ length: count }, (_, index) => v7({ msecs: at, seq: first + index, random: takeRandom() }))
}

/** Asked for in advance: each time is a system call, and on some machines a slow one. No byte is given out twice. */
function takeRandom(): Buffer {
  if (reserve.length < BYTES) reserve = randomBytes(RESERVE_BYTES)
  const taken = reserve.subarray(0, BYTES)
  reserve = reserve.subarray(BYTES)
  return taken
}
