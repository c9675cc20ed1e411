/**
 * What becomes of a slot that begins while runs of its schedule are not over: it is skipped, it waits, it runs beside
 * them, or it takes their place.
 */
export const OVERLAP_POLICIES = ['forbid', 'queue', 'allow', 'replace'] as const

export type OverlapPolicy = (typeof OVERLAP_POLICIES)[number]

/** A run of the schedule that is not over. */
export interface OpenRun {
  readonly id: string
  readonly state: 'pending' | 'running' | 'retrying'
  /** A run-now counts like any other: it is the work that must not overlap, whoever asked for it. */
  readonly trigger: 'schedule' | 'manual'
}

export interface OverlapDecision {
  readonly decision: 'run' | 'wait' | 'skip'
  /** Runs waiting to retry that end as failed: superseded. */
  readonly supersede: readonly string[]
  /** Running ones to cancel through their signal. The new run starts once they are over. */
  readonly cancel: readonly string[]
  /** Runs waiting to start that end as skipped: superseded. */
  readonly displace: readonly string[]
}

const RUN: OverlapDecision = { decision: 'run', supersede: [], cancel: [], displace: [] }
const SKIP: OverlapDecision = { decision: 'skip', supersede: [], cancel: [], displace: [] }

/**
 * Decided under the lock of the schedule's row, so `open` is the truth and no job can start one of these
 * meanwhile.
 *
 * A run waiting to retry is in nobody's way: it ends when the next slot begins. A slot that is skipped has not begun,
 * so it leaves everything as it is.
 */
export function decideOverlap({
  policy,
  open,
}: {
  readonly policy: OverlapPolicy
  readonly open: readonly OpenRun[]
}): OverlapDecision {
  if (policy === 'allow') return RUN
  const running = idsOf(open, 'running')
  const pending = idsOf(open, 'pending')
  const begun = { ...RUN, supersede: idsOf(open, 'retrying') }
  if (running.length === 0 && pending.length === 0) return begun
  switch (policy) {
    case 'forbid':
      return SKIP
    case 'queue':
      // At most one waits. If none runs, the one that waits is about to start: it still has the place.
      return pending.length > 0 ? SKIP : { ...begun, decision: 'wait' }
    case 'replace':
      // Never two at once: the new run waits until the cancelled ones have really ended.
      return { ...begun, decision: running.length > 0 ? 'wait' : 'run', cancel: running, displace: pending }
  }
}

function idsOf(open: readonly OpenRun[], state: OpenRun['state']): string[] {
  return open.filter((run) => run.state === state).map((run) => run.id)
}
