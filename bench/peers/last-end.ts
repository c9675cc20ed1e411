import { nowMs, until, within } from '../clock.ts'

const LOOK_EVERY_MS = 50

/** The peer's own count of ended slots. `lastAt` is in epoch milliseconds, and null before the first one. */
export interface Ends {
  readonly ended: number
  readonly lastAt: number | null
}

/** When the last slot ended, from the peer's own rows. A peer calls its function before it records the end. */
export async function lastEnd(
  p: { count: number; giveUpAt: number },
  look: () => Promise<Ends | undefined>,
): Promise<number> {
  for (;;) {
    const ends = await look()
    if (ends !== undefined && ends.lastAt !== null && ends.ended >= p.count) return ends.lastAt
    await within(until(nowMs() + LOOK_EVERY_MS), p.giveUpAt)
  }
}
