import { foundText, messageOf } from '@carillon/api'

import type { Permissions } from '../access/grants.ts'
import type { Clock } from '../kernel/clock.ts'
import { idempotencyKey } from '../kernel/ids.ts'
import type { HeldRun } from '../ledger/held-run.ts'
import type { Outcome, Target, TargetContext } from '../ports/target.ts'
import type { PermissionChecker, Verdict } from './permissions.ts'
import type { Ending } from './settle.ts'

/** Why the worker aborts an attempt. */
export type AbortReason = 'cancel' | 'timeout' | 'hand_back' | 'lease_lost'

/**
 * DISPATCH: calls the target once. Never throws and always ends: after its time limit the attempt is over, even if the target is
 * still working. `known` are the permissions that were read when the run began; if they are null, the permission check reads them.
 * @returns null if the lease was lost: then there is nothing to write
 */
export async function attemptRun(
  run: HeldRun,
  target: Target | undefined,
  {
    clock,
    abort,
    checker,
    known,
  }: { clock: Clock; abort: AbortController; checker: PermissionChecker; known: Permissions | null },
): Promise<Ending | null> {
  if (target === undefined) return malformed('unknown_target_kind', `no target of kind ${run.targetKind} is registered`)
  const spec = readSpec(run, target)
  if ('error' in spec) return spec
  const stopTimer = clock.after(spec.timeoutMs, () => abort.abort('timeout' satisfies AbortReason))
  try {
    const aborted = whenAborted(abort.signal)
    const asked = checkPermission(run, checker, spec.requiredScope, known)
    // The time limit covers the permission check too: an authorization service may never answer.
    const verdict = asked instanceof Promise ? await Promise.race([asked, aborted]) : asked
    // Aborted during the check: the target was not called.
    if (abort.signal.aborted) return endingOfAbort(abort.signal.reason as AbortReason, { kind: 'cancelled' })
    if (verdict.kind !== 'granted') return verdict
    const outcome = await Promise.race([dispatch(run, target, { ...verdict, spec: spec.data }, abort.signal), aborted])
    return abort.signal.aborted ? endingOfAbort(abort.signal.reason as AbortReason, outcome) : outcome
  } finally {
    stopTimer()
  }
}

/** The spec as its target reads it. The target's code may have changed since the spec was stored, and may throw. */
function readSpec(
  run: HeldRun,
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

/** Fails closed: if the permission cannot be read, the target is not called and the attempt is retried. */
function checkPermission(
  run: HeldRun,
  checker: PermissionChecker,
  requiredScope: string,
  known: Permissions | null,
): Verdict | FailedOutcome | Promise<Verdict | FailedOutcome> {
  try {
    const verdict = checker.check(run, requiredScope, known)
    return verdict instanceof Promise ? verdict.catch(permissionUnknown) : verdict
  } catch (error) {
    return permissionUnknown(error)
  }
}

function permissionUnknown(error: unknown): FailedOutcome {
  const message = `the run's permission could not be read, so the target was not called: ${messageOf(error)}`
  return { kind: 'failed', error: { code: 'rights_unknown', message }, retryable: true }
}

async function dispatch(
  run: HeldRun,
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
    return isOutcome(outcome) ? outcome : unreadableOutcome(outcome)
  } catch (error) {
    return { kind: 'failed', error: { code: 'target_threw', message: messageOf(error) }, retryable: true }
  }
}

const OUTCOME_KINDS: readonly unknown[] = ['succeeded', 'failed', 'cancelled', 'malformed'] satisfies Outcome['kind'][]

/** Checked at run time: a target may be plain JavaScript, and a wrong return value must not end the worker. */
function isOutcome(value: unknown): value is Outcome {
  if (typeof value !== 'object' || value === null || !('kind' in value) || !OUTCOME_KINDS.includes(value.kind)) {
    return false
  }
  const isRefusal = value.kind === 'failed' || value.kind === 'malformed'
  return !isRefusal || ('error' in value && typeof value.error === 'object' && value.error !== null)
}

function unreadableOutcome(value: unknown): Malformed {
  const found = typeof value === 'object' && value !== null ? 'an object of another shape' : foundText(value)
  return malformed('unreadable_outcome', `expected an outcome from the target, got ${found}`)
}

/** A target that succeeded before it saw the signal has succeeded. */
function endingOfAbort(reason: AbortReason, outcome: Outcome): Ending | null {
  if (reason === 'lease_lost') return null
  if (outcome.kind === 'succeeded') return outcome
  switch (reason) {
    case 'cancel':
      return { kind: 'cancelled' }
    case 'hand_back':
      return { kind: 'handed_back' }
    case 'timeout':
      return {
        kind: 'failed',
        error: { code: 'timeout', message: 'expected an answer within the time limit, got none' },
        retryable: true,
      }
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
