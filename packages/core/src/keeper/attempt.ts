import type { Clock } from '../clock.ts'
import { idempotencyKey } from '../keys.ts'
import type { Ending } from '../settlement.ts'
import type { Rights } from '../store/rights.ts'
import type { TakenRun } from '../store/taken-run.ts'
import type { Outcome, Target, TargetContext } from '../target.ts'
import type { RightsDesk, Verdict } from './rights-desk.ts'

/** Why the worker itself ends an attempt. */
export type AbortReason = 'cancel' | 'timeout' | 'hand_back' | 'lease_lost'

/**
 * DISPATCH: calls the target once. Always ends, and never throws: an attempt that outlives its time is cut, and what its
 * target still does is not waited for. Null if the lease is gone: then there is nothing left to write.
 */
export async function attemptRun(
  run: TakenRun,
  target: Target | undefined,
  { clock, abort, rights, known }: { clock: Clock; abort: AbortController; rights: RightsDesk; known: Rights | null },
): Promise<Ending | null> {
  if (target === undefined) return malformed('unknown_target_kind', `no target of kind ${run.targetKind} is registered`)
  const spec = readSpec(run, target)
  if ('error' in spec) return spec
  const stopTimer = clock.after(spec.timeoutMs, () => abort.abort('timeout' satisfies AbortReason))
  try {
    const aborted = whenAborted(abort.signal)
    const asked = checkRight(run, rights, spec.requiredScope, known)
    // Raced, too: whoever is asked about the right may never answer.
    const verdict = asked instanceof Promise ? await Promise.race([asked, aborted]) : asked
    // Told to stop meanwhile: nothing was called.
    if (abort.signal.aborted) return endingOfAbort(abort.signal.reason as AbortReason, { kind: 'cancelled' })
    if (verdict.kind !== 'granted') return verdict
    const outcome = await Promise.race([dispatch(run, target, { ...verdict, spec: spec.data }, abort.signal), aborted])
    return abort.signal.aborted ? endingOfAbort(abort.signal.reason as AbortReason, outcome) : outcome
  } finally {
    stopTimer()
  }
}

/** What the target makes of its spec. Its code may throw on what was stored before it was changed. */
function readSpec(
  run: TakenRun,
  target: Target,
):
  | { readonly data: { readonly kind: string }; readonly timeoutMs: number; readonly requiredScope: string }
  | Malformed {
  try {
    const spec = target.schema.safeParse(run.target)
    if (!spec.success) return malformed('unreadable_target', spec.error.issues[0]?.message ?? 'unknown')
    const { data } = spec
    return { data, timeoutMs: target.timeoutMs(data), requiredScope: target.requiredScope(data) }
  } catch (error) {
    return malformed('unreadable_target', messageOf(error))
  }
}

/** Fails closed: a right that cannot be looked up is none, and the attempt is tried again. */
function checkRight(
  run: TakenRun,
  rights: RightsDesk,
  requiredScope: string,
  known: Rights | null,
): Verdict | FailedOutcome | Promise<Verdict | FailedOutcome> {
  try {
    const verdict = rights.check(run, requiredScope, known)
    return verdict instanceof Promise ? verdict.catch(rightsUnknown) : verdict
  } catch (error) {
    return rightsUnknown(error)
  }
}

function rightsUnknown(error: unknown): FailedOutcome {
  const message = `whether the run may act could not be found out, so nothing was called: ${messageOf(error)}`
  return { kind: 'failed', error: { code: 'rights_unknown', message }, retryable: true }
}

async function dispatch(
  run: TakenRun,
  target: Target,
  { spec, grant, limits }: Pick<TargetContext<{ readonly kind: string }>, 'spec' | 'grant' | 'limits'>,
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
        grant,
        limits,
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
type FailedOutcome = Extract<Outcome, { readonly kind: 'failed' }>

export function malformed(code: string, message: string): Malformed {
  return { kind: 'malformed', error: { code, message } }
}

export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}
