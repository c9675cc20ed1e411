import { randomBytes } from 'node:crypto'

import { v7 } from 'uuid'

/** Before every id. No row has it. */
export const NIL_UUID = '00000000-0000-0000-0000-000000000000'
const ID_BYTES = 16
const SEQUENCES = 2 ** 31
const RESERVE_BYTES = 4096

let reserve = randomBytes(RESERVE_BYTES)

/**
 * A UUIDv7 of an instant read from Postgres. Ids sort by the database's clock and index pages fill in order, even if the
 * worker's own clock is wrong.
 */
export function identifierAt(at: number): string {
  return v7({ msecs: at, random: takeRandom() })
}

/** Several ids of one instant that sort in the order of the list. */
export function identifiersAt(at: number, count: number): string[] {
  const first = takeRandom().readUInt32BE(0) % (SEQUENCES - count)
  return Array.from({ length: count }, (_, index) => v7({ msecs: at, seq: first + index, random: takeRandom() }))
}

/** I5: the key that a target receives. It is the same on every attempt at a slot and different for every slot. */
export function idempotencyKey(scheduleId: string, scheduledFor: number): string {
  return `sched:${scheduleId}:${scheduledFor}`
}

/** Random bytes are read in portions because each read is a system call. No byte is used twice. */
function takeRandom(): Buffer {
  if (reserve.length < ID_BYTES) reserve = randomBytes(RESERVE_BYTES)
  const taken = reserve.subarray(0, ID_BYTES)
  reserve = reserve.subarray(ID_BYTES)
  return taken
}
