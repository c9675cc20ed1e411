import { nowMs } from '../clock.ts'
import type { Creation } from '../measure.ts'

/** The number of connections to Postgres of a peer whose pool size can be set: one for each creating client. */
export const CONNECTIONS = 20

/** Calls `one` for 0 to `count` - 1 from several concurrent clients. Each client waits for its call before it makes the next one. */
export async function inTurn(
  work: { count: number; clients: number },
  one: (n: number) => Promise<unknown>,
): Promise<Creation> {
  let next = 0
  const client = async (): Promise<void> => {
    while (next < work.count) {
      const n = next
      next += 1
      await one(n)
    }
  }
  const startedAt = nowMs()
  await Promise.all(Array.from({ length: work.clients }, client))
  return { count: work.count, seconds: (nowMs() - startedAt) / 1000 }
}
