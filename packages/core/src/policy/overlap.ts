import type { RunWait } from './run-state.ts'

/**
 * What becomes of a slot that begins while runs of its schedule are not over: it is skipped, it waits, it runs beside
 * them, or it takes their place.
 */
export const OVERLAP_POLICIES = ['forbid', 'queue', 'allow', 'replace'] as const

export type OverlapPolicy = (typeof OVERLAP_POLICIES)[number]

/** A run of the schedule that is not over. A run-now counts like any other: it is the work that must not overlap. */
export interface OpenRun {
  readonly id: string
  /** Null while a worker holds it. */
  readonly waitsFor: RunWait | null
  readonly attemptCount: number
}

/** A waiting run that ends because the next slot takes its place. */
export interface SupersededRun {
  readonly id: string
  /** Then it has failed; if not, it is skipped and was never a run. */
  readonly isTried: boolean
}

export interface OverlapDecision {
  readonly decision: 'run' | 'wait' | 'skip'
  readonly supersede: readonly SupersededRun[]
  /** Held ones to cancel through their signal. The new run starts once they are over. */
  readonly cancel: readonly string[]
}

const SKIP: OverlapDecision = { decision: 'skip', supersede: [], cancel: [] }

/**
 * Decided under the lock of the schedule's row, so `open` is the truth: no worker takes or frees one of these meanwhile.
 *
 * | an open run…                              | forbid     | queue                | replace                    |
 * |-------------------------------------------|------------|----------------------|----------------------------|
 * | is held by a worker                       | skip       | wait                 | cancel it, wait            |
 * | waits for its turn                        | skip       | skip: at most one    | supersede it               |
 * | waits for a worker, or was deferred       | skip       | wait: it goes first  | supersede it               |
 * | waits for its retry                       | supersede it under all three; it is in nobody's way                   |
 *
 * Of several, each is looked at by itself; one that is in the way is enough. A slot that is skipped has not begun, so it leaves
 * everything as it is.
 */
export function decideOverlap({
  policy,
  open,
}: {
  readonly policy: OverlapPolicy
  readonly open: readonly OpenRun[]
}): OverlapDecision {
  if (policy === 'allow') return { decision: 'run', supersede: [], cancel: [] }
  const retrying = open.filter(({ waitsFor }) => waitsFor === 'retry')
  const inTheWay = open.filter(({ waitsFor }) => waitsFor !== 'retry')
  if (inTheWay.length === 0) return { decision: 'run', supersede: superseded(retrying), cancel: [] }
  switch (policy) {
    case 'forbid':
      return SKIP
    case 'queue':
      if (inTheWay.some(({ waitsFor }) => waitsFor === 'turn')) return SKIP
      return { decision: 'wait', supersede: superseded(retrying), cancel: [] }
    case 'replace': {
      // Never two at once: the new run waits until the cancelled ones have really ended.
      const cancel = open.filter(({ waitsFor }) => waitsFor === null).map(({ id }) => id)
      const waiting = open.filter(({ waitsFor }) => waitsFor !== null)
      return { decision: cancel.length > 0 ? 'wait' : 'run', supersede: superseded(waiting), cancel }
    }
  }
}

function superseded(runs: readonly OpenRun[]): SupersededRun[] {
  return runs.map(({ id, attemptCount }) => ({ id, isTried: attemptCount > 0 }))
}

/** What superseding runs does to the counts of their schedule. */
export function countSuperseded(runs: readonly SupersededRun[]): { readonly failed: number; readonly untried: number } {
  const failed = runs.filter(({ isTried }) => isTried).length
  return { failed, untried: runs.length - failed }
}
