/** What people take for the time. For how long a sign-in lasts; never for due-ness, which Postgres decides (I10). */
export interface WallClock {
  /** Epoch milliseconds. */
  now(): number
}

export const systemWallClock: WallClock = { now: () => Date.now() }
