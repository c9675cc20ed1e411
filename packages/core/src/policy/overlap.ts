import type { OverlapPolicy, RunWait } from '@carillon/api'

/** A run of the schedule that has not ended. A manual run counts like any other: it does the same work. */
export interface OpenRun {
  readonly id: string
  /** Null while a worker holds it. `completion`: its target passed the work on. */
  readonly waitsFor: RunWait | null
  readonly attemptCount: number
}

/** A waiting run that ends because the next slot replaces it. */
export interface SupersededRun {
  readonly id: string
  /** True if an attempt was made: the run then ends as failed, otherwise as skipped. */
  readonly isTried: boolean
}

export interface OverlapDecision {
  readonly decision: 'run' | 'wait' | 'skip'
  readonly supersede: readonly SupersededRun[]
  /** Ids of running and detached runs to cancel. The new run starts when they have ended. */
  readonly cancel: readonly string[]
}

const SKIP: OverlapDecision = { decision: 'skip', supersede: [], cancel: [] }

/**
 * Decides by the open runs of a schedule whether its new run starts, waits or is skipped. The caller holds the lock of the schedule's
 * row, so no worker takes or ends one of the open runs meanwhile.
 *
 * | an open run…                              | forbid     | queue                | replace                    |
 * |-------------------------------------------|------------|----------------------|----------------------------|
 * | is held by a worker, or detached          | skip       | wait                 | cancel it, wait            |
 * | waits for its turn                        | skip       | skip: at most one    | supersede it               |
 * | waits for a worker, or was deferred       | skip       | wait: it goes first  | supersede it               |
 * | waits for its retry                       | supersede it under all three; it blocks nothing                       |
 *
 * The table applies to each open run by itself: a single one can make the new run wait or be skipped. A skipped slot leaves every open
 * run as it is. Under `allow` the new run always starts.
 */
export function decideOverlap({
  policy,
  open,
}: {
  readonly policy: OverlapPolicy
  readonly open: readonly OpenRun[]
}): OverlapDecision {
  if (policy === 'allow') return { decision: 'run', supersede: [], cancel: [] }
  if (findBlockingRun({ policy, open }) !== undefined) return SKIP
  const retrying = open.filter(({ waitsFor }) => waitsFor === 'retry')
  if (retrying.length === open.length) return { decision: 'run', supersede: superseded(retrying), cancel: [] }
  if (policy !== 'replace') return { decision: 'wait', supersede: superseded(retrying), cancel: [] }
  // Two runs never run at once: the new run waits until the cancelled runs have ended.
  const cancel = open.filter(isUnderWay).map(({ id }) => id)
  const waiting = open.filter((run) => !isUnderWay(run))
  return { decision: cancel.length > 0 ? 'wait' : 'run', supersede: superseded(waiting), cancel }
}

/** The first open run that makes `decideOverlap` skip the new run; undefined if none does. */
export function findBlockingRun({
  policy,
  open,
}: {
  readonly policy: OverlapPolicy
  readonly open: readonly OpenRun[]
}): OpenRun | undefined {
  switch (policy) {
    case 'forbid':
      return open.find(({ waitsFor }) => waitsFor !== 'retry')
    case 'queue':
      return open.find(({ waitsFor }) => waitsFor === 'turn')
    case 'allow':
    case 'replace':
      return undefined
  }
}

/** True if a target works on the run: it must be asked to stop before another run may start. */
export function isUnderWay({ waitsFor }: Pick<OpenRun, 'waitsFor'>): boolean {
  return waitsFor === null || waitsFor === 'completion'
}

function superseded(runs: readonly OpenRun[]): SupersededRun[] {
  return runs.map(({ id, attemptCount }) => ({ id, isTried: attemptCount > 0 }))
}

/** How many superseded runs count as failures of their schedule, and how many do not. */
export function countSuperseded(runs: readonly SupersededRun[]): { readonly failed: number; readonly untried: number } {
  const failed = runs.filter(({ isTried }) => isTried).length
  return { failed, untried: runs.length - failed }
}
