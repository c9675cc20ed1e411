import { foundText, messageOf } from '@carillon/api'

import type { Permissions } from '../access/grants.ts'
import type { Clock } from '../kernel/clock.ts'
import { idempotencyKey } from '../kernel/ids.ts'
import type { HeldRun } from '../ledger/held-run.ts'
import type { Outcome, Target, TargetContext } from '../ports/target.ts'
import type { PermissionChecker, Verdict } from './permissions.ts'
import type { Ending } from './settlement.ts'

/** Why the worker aborts an attempt. */
export type AbortReason = 'cancel' | 'timeout' | 'hand_back' | 'lease_lost'

interface AttemptDeps {
  readonly clock: Clock
  readonly abort: AbortController
  readonly checker: PermissionChecker
  /** The permissions that were read when the run began; null: the permission check reads them. */
  readonly known: Permissions | null
  /** Appends to the transcript of the run. */
  readonly record: TargetContext<unknown>['record']
  /** Where the called side completes the run. */
  readonly callback: TargetContext<unknown>['callback']
}

/**
 * DISPATCH: calls the target once. Never throws and always ends: after its time limit the attempt is over, even if the target is
 * still working.
 * @returns null if the lease was lost: then there is nothing to write
 */
export async function attemptRun(
  run: HeldRun,
  target: Target | undefined,
  { clock, abort, checker, known, record, callback }: AttemptDeps,
): Promise<Ending | null> {
  if (target === undefined) return malformed('unknown_target_kind', `no target of kind ${run.targetKind} is registered`)
  const spec = readSpec(run, target)
  if ('error' in spec) return spec
  const limit = new TimeLimit(clock, spec, () => abort.abort('timeout' satisfies AbortReason))
  try {
    const aborted = whenAborted(abort.signal)
    const asked = checkPermission(run, checker, spec.requiredScope, known)
    // The time limit covers the permission check too: an authorization service may never answer.
    const verdict = asked instanceof Promise ? await Promise.race([asked, aborted]) : asked
    // Aborted during the check: the target was not called.
    if (abort.signal.aborted) return endingOfAbort(abort.signal.reason as AbortReason, { kind: 'cancelled' })
    if (verdict.kind !== 'granted') return verdict
    const extend = (ms: number): void => limit.extend(ms)
    const granted = { ...verdict, spec: spec.data, record, extend, callback }
    const outcome = await Promise.race([dispatch(run, target, granted, abort.signal), aborted])
    return abort.signal.aborted ? endingOfAbort(abort.signal.reason as AbortReason, outcome) : outcome
  } finally {
    limit.stop()
  }
}

/** The part of a spec that an attempt needs, as the target reads it. */
interface ReadSpec {
  readonly data: { readonly kind: string }
  readonly timeoutMs: number
  readonly timeoutMaxMs: number
  readonly requiredScope: string
}

/** The spec as its target reads it. The target's code may have changed since the spec was stored, and may throw. */
function readSpec(run: HeldRun, target: Target): ReadSpec | Malformed {
  try {
    const spec = target.schema.safeParse(run.target)
    if (!spec.success) return malformed('unreadable_target', spec.error.issues[0]?.message ?? 'unknown')
    const { data } = spec
    const timeoutMs = target.timeoutMs(data)
    const timeoutMaxMs = target.timeoutMaxMs?.(data) ?? timeoutMs
    return { data, timeoutMs, timeoutMaxMs, requiredScope: target.requiredScope(data) }
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

/** What the context of an attempt has besides the run itself. */
type Granted = Pick<
  TargetContext<{ readonly kind: string }>,
  'spec' | 'grant' | 'limits' | 'record' | 'extend' | 'callback'
>

async function dispatch(
  run: HeldRun,
  target: Target,
  { spec, grant, limits, record, extend, callback }: Granted,
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
        revision: run.revision,
        attempt: run.attempt,
        trigger: run.trigger,
        idempotencyKey: idempotencyKey(run.scheduleId, run.scheduledFor),
        spec,
        grant,
        limits,
        record,
        extend,
        callback,
      },
      signal,
    )
    return isOutcome(outcome) ? outcome : unreadableOutcome(outcome)
  } catch (error) {
    return { kind: 'failed', error: { code: 'target_threw', message: messageOf(error) }, retryable: true }
  }
}

/** Checked at run time: a target may be plain JavaScript, and a wrong return value must not end the worker. */
function isOutcome(value: unknown): value is Outcome {
  if (typeof value !== 'object' || value === null || !('kind' in value)) return false
  switch (value.kind) {
    case 'succeeded':
    case 'cancelled':
      return true
    case 'failed':
    case 'malformed':
      return 'error' in value && typeof value.error === 'object' && value.error !== null
    case 'accepted':
      return 'deadlineMs' in value && isDuration(value.deadlineMs)
    case 'deferred':
      return 'until' in value && Number.isFinite(value.until)
    default:
      return false
  }
}

function isDuration(value: unknown): boolean {
  return typeof value === 'number' && Number.isFinite(value) && value >= 0
}

function unreadableOutcome(value: unknown): Malformed {
  const found = typeof value === 'object' && value !== null ? 'an object of another shape' : foundText(value)
  return malformed('unreadable_outcome', `expected an outcome from the target, got ${found}`)
}

/** A target that succeeded before it saw the signal has succeeded; work that it passed on goes on elsewhere. */
function endingOfAbort(reason: AbortReason, outcome: Outcome): Ending | null {
  if (reason === 'lease_lost') return null
  if (outcome.kind === 'succeeded' || outcome.kind === 'accepted') return outcome
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

/**
 * The time limit of one attempt. A target may extend it, but never beyond the longest time that its kind allows, counted from the start
 * of the attempt.
 */
export class TimeLimit {
  readonly #clock: Clock
  readonly #onPassed: () => void
  /** By the monotonic clock. */
  readonly #latestMs: number
  #stopTimer: () => void
  #isStopped = false

  constructor(
    clock: Clock,
    { timeoutMs, timeoutMaxMs }: { readonly timeoutMs: number; readonly timeoutMaxMs: number },
    onPassed: () => void,
  ) {
    this.#clock = clock
    this.#onPassed = onPassed
    this.#latestMs = clock.monotonicMs() + Math.max(timeoutMs, timeoutMaxMs)
    this.#stopTimer = clock.after(timeoutMs, onPassed)
  }

  /** Moves the limit to this many milliseconds from now. Ignores what is no duration, and does nothing once the attempt is over. */
  extend(ms: number): void {
    if (this.#isStopped || !(ms >= 0)) return
    this.#stopTimer()
    this.#stopTimer = this.#clock.after(Math.min(ms, this.#latestMs - this.#clock.monotonicMs()), this.#onPassed)
  }

  stop(): void {
    this.#isStopped = true
    this.#stopTimer()
  }
}
