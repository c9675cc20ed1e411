import type { Clock } from '../clock.ts'
import { idempotencyKey } from '../keys.ts'
import type { Ending } from '../settlement.ts'
import type { TakenRun } from '../store/taken-run.ts'
import type { Outcome, Target } from '../target.ts'

/** Why the worker itself ends an attempt. */
export type AbortReason = 'cancel' | 'timeout' | 'hand_back' | 'lease_lost'

/**
 * DISPATCH: calls the target once. Always ends, and never throws: an attempt that outlives its time is cut, and what its
 * target still does is not waited for. Null if the lease is gone: then there is nothing left to write.
 */
export async function attemptRun(
  run: TakenRun,
  target: Target | undefined,
  { clock, abort }: { clock: Clock; abort: AbortController },
): Promise<Ending | null> {
  if (target === undefined) return malformed('unknown_target_kind', `no target of kind ${run.targetKind} is registered`)
  const spec = readSpec(run, target)
  if ('error' in spec) return spec
  const stopTimer = clock.after(spec.timeoutMs, () => abort.abort('timeout' satisfies AbortReason))
  try {
    const outcome = await Promise.race([dispatch(run, target, spec.data, abort.signal), whenAborted(abort.signal)])
    return abort.signal.aborted ? endingOfAbort(abort.signal.reason as AbortReason, outcome) : outcome
  } finally {
    stopTimer()
  }
}

/** What the target makes of its spec. Its code may throw on what was stored before it was changed. */
function readSpec(
  run: TakenRun,
  target: Target,
): { readonly data: { readonly kind: string }; readonly timeoutMs: number } | Malformed {
  try {
    const spec = target.schema.safeParse(run.target)
    if (!spec.success) return malformed('unreadable_target', spec.error.issues[0]?.message ?? 'unknown')
    return { data: spec.data, timeoutMs: target.timeoutMs(spec.data) }
  } catch (error) {
    return malformed('unreadable_target', messageOf(error))
  }
}

async function dispatch(
  run: TakenRun,
  target: Target,
  spec: { readonly kind: string },
  signal: AbortSignal,
): Promise<Outcome> {
  try {
    const outcome: unknown = await target.dispatch(
      {
        tenantId: run.tenantId,
        projectId: run.projectId,
        scheduleId: run.scheduleId,
        runId: run.runId,
        scheduledFor: run.scheduledFor,
        attempt: run.attempt,
        trigger: run.trigger,
        idempotencyKey: idempotencyKey(run.scheduleId, run.scheduledFor),
        spec,
      },
      signal,
    )
    return isOutcome(outcome) ? outcome : malformed('unreadable_outcome', 'the target returned something else')
  } catch (error) {
    return { kind: 'failed', error: { code: 'target_threw', message: messageOf(error) }, retryable: true }
  }
}

const OUTCOME_KINDS: readonly unknown[] = ['succeeded', 'failed', 'cancelled', 'malformed'] satisfies Outcome['kind'][]

/** A type is no proof: a target may be written in JavaScript, and what it returns must not end the worker. */
function isOutcome(value: unknown): value is Outcome {
  if (typeof value !== 'object' || value === null || !('kind' in value) || !OUTCOME_KINDS.includes(value.kind)) {
    return false
  }
  const isRefusal = value.kind === 'failed' || value.kind === 'malformed'
  return !isRefusal || ('error' in value && typeof value.error === 'object' && value.error !== null)
}

/** What really happened counts: a target that answered before it saw the signal has answered. */
function endingOfAbort(reason: AbortReason, outcome: Outcome): Ending | null {
  if (reason === 'lease_lost') return null
  if (outcome.kind === 'succeeded') return outcome
  switch (reason) {
    case 'cancel':
      return { kind: 'cancelled' }
    case 'hand_back':
      return { kind: 'handed_back' }
    case 'timeout':
      return { kind: 'failed', error: { code: 'timeout', message: 'cut at its time limit' }, retryable: true }
  }
}

function whenAborted(signal: AbortSignal): Promise<Outcome> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve({ kind: 'cancelled' })
    else signal.addEventListener('abort', () => resolve({ kind: 'cancelled' }), { once: true })
  })
}

type Malformed = Extract<Outcome, { readonly kind: 'malformed' }>

export function malformed(code: string, message: string): Malformed {
  return { kind: 'malformed', error: { code, message } }
}

export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}
