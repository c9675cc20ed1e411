import type { Call } from './target-server.ts'

/** How long runs took from a lost attempt to the next one, in milliseconds. */
export interface RecoveryTimes {
  readonly count: number
  readonly p50: number
  readonly p99: number
  readonly longest: number
}

/**
 * A call that its caller left unanswered is a lost attempt; the next call of the same slot is the recovery. A run lost
 * several times counts each time, from its last loss. A run that was cancelled has no next call and does not count.
 */
export function recoveryTimes(calls: readonly Call[]): RecoveryTimes {
  const waits = [...Map.groupBy(calls, ({ key }) => key).values()]
    .flatMap((attempts) => {
      const inOrder = attempts.toSorted((a, b) => a.arrivedAt - b.arrivedAt)
      return inOrder.map(({ brokenAt }, place) => (inOrder[place + 1]?.arrivedAt ?? NaN) - (brokenAt ?? NaN))
    })
    .filter((wait) => wait >= 0)
    .toSorted((a, b) => a - b)
  const at = (share: number): number => waits[Math.min(waits.length - 1, Math.floor(waits.length * share))] ?? 0
  return { count: waits.length, p50: at(0.5), p99: at(0.99), longest: waits.at(-1) ?? 0 }
}
