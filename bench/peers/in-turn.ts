import { nowMs } from '../clock.ts'
import type { Creation } from '../measure.ts'

/** Does something for 0 to `count` - 1, by several clients, each of which waits for one to end before the next. */
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
