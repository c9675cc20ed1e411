import { SYSTEM_SUBJECT, type RetryPolicy } from '@carillon/api'

import type { Events } from '../kernel/events.ts'
import type { Json } from '../kernel/json.ts'
import type { RunFence } from '../ledger/held-run.ts'
import { decideRetry } from '../policy/retry.ts'
import { AUTO_PAUSE_REASON } from '../policy/schedule-policy.ts'
import type { AttemptError, Outcome, ScheduleEffect } from '../ports/target.ts'
import { emitEffects, type ScheduleEffectMade } from './schedule-effects.ts'
import type { SettledRun, Settlement } from './store/settle.ts'

/** How an attempt ended, as the worker saw it. */
export type Ending =
  | Outcome
  /** The run may not act: its permission is gone, or `admit` refused it. Its target was not called. */
  | {
      readonly kind: 'refused'
      readonly reason: string
      /** Whether it counts toward auto-pause. @default true */
      readonly isFailure?: boolean
      readonly effect?: ScheduleEffect
    }
  /** The run's worker died. Another worker reports it. */
  | { readonly kind: 'lost' }
  /** The worker stops, or did not know that it held the run, and returns it untried: no attempt is charged. */
  | { readonly kind: 'handed_back' }
  /** The deadline of a detached run has passed. */
  | { readonly kind: 'timed_out'; readonly isRetried: boolean }

export interface SettlementOptions {
  readonly retry: RetryPolicy
  /** False if the overlap policy rules out that another run of the schedule waits for this one to end. @default true */
  readonly mayFree?: boolean
  /** Who held the run. @default 'running' */
  readonly held?: Settlement['held']
}

const LOST: AttemptError = { code: 'worker_lost', message: 'the worker died before the attempt was settled' }
const TIMED_OUT: AttemptError = { code: 'deadline', message: 'expected a completion before the deadline, got none' }

/** Any worker with room may take the run. */
const AT_ONCE = { waitsFor: 'worker', dueInMs: 0 } as const

/** Turns the ending of an attempt into what is written. First attempts, retries, rescues and completions all come through here. */
export function settlementOf(
  run: RunFence,
  ending: Ending,
  { retry, mayFree = true, held = 'running' }: SettlementOptions,
): Settlement {
  const base = {
    run,
    retry,
    mayFree,
    held,
    ending: ending.kind,
    reason: null,
    waitsFor: null,
    dueInMs: null,
    dueAt: null,
    error: null,
    result: null,
    reference: null,
    isFailure: true,
    effect: null,
    completion: null,
    completedBy: null,
    private: 'private' in ending ? ending.private : undefined,
  }
  const again = run.attempt === 1 ? 'pending' : 'retrying'
  switch (ending.kind) {
    case 'succeeded':
      return { ...base, state: 'succeeded', outcome: 'succeeded', result: toText(ending.result) }
    case 'cancelled':
      return { ...base, state: 'cancelled', outcome: 'cancelled' }
    case 'malformed':
      return { ...base, state: 'failed', outcome: 'malformed', error: errorText(ending.error) }
    case 'accepted': {
      const { deadlineMs: dueInMs, reference = null } = ending
      return { ...base, state: 'detached', outcome: null, waitsFor: 'completion', dueInMs, reference }
    }
    case 'deferred':
      return { ...base, state: again, outcome: null, waitsFor: 'deferred', dueAt: ending.until }
    case 'refused': {
      const { reason, isFailure = true, effect = null } = ending
      // A run that was tried before did run, so it cannot be skipped.
      return { ...base, state: run.attempt === 1 ? 'skipped' : 'failed', outcome: null, reason, isFailure, effect }
    }
    case 'handed_back':
      return { ...base, state: again, outcome: null, ...AT_ONCE }
    case 'lost':
      // Without a backoff: the run has already waited for its worker's lease to run out.
      return run.attempt < retry.maxAttempts
        ? { ...base, state: 'retrying', outcome: 'lost', ...AT_ONCE, error: errorText(LOST) }
        : { ...base, state: 'failed', outcome: 'lost', error: errorText(LOST) }
    case 'timed_out': {
      const failed = { ...base, outcome: 'timed_out', error: errorText(TIMED_OUT) } as const
      return { ...failed, ...afterFailure(run, retry, { retryable: ending.isRetried }) }
    }
    case 'failed': {
      const failed = { ...base, outcome: 'failed', error: errorText(ending.error) } as const
      return { ...failed, ...afterFailure(run, retry, ending) }
    }
  }
}

/** Whether a failed attempt is followed by another, and when. */
function afterFailure(
  { attempt, runId }: RunFence,
  policy: RetryPolicy,
  outcome: { readonly retryable: boolean; readonly retryAfterMs?: number },
): Pick<Settlement, 'state' | 'waitsFor' | 'dueInMs'> {
  const next = decideRetry({ policy, attempt, outcome, jitterSeed: runId })
  return next.kind === 'retry'
    ? { state: 'retrying', waitsFor: 'retry', dueInMs: next.delayMs }
    : { state: 'failed', waitsFor: null, dueInMs: null }
}

/** True if settling needs no lock on the schedule: no retry, no failure to count, no run that waits for this one to end, no hook. */
export function needsNoLock({ state, held, mayFree }: Settlement): boolean {
  return state === 'succeeded' && held === 'running' && !mayFree
}

/** What a batch of settlements wrote. */
export interface SettledBatch {
  /** The runs that were settled; a settlement whose fence no longer holds is missing (I12). */
  readonly runs: readonly SettledRun[]
  /** The schedules that hooks completed or paused. */
  readonly effects: readonly ScheduleEffectMade[]
}

/** Emits what was settled and what followed from it. A run's own worker and a rescuer emit the same events. */
export function emitSettled(events: Events, { runs, effects }: SettledBatch): void {
  for (const run of runs) emitRun(events, run)
  if (effects.length > 0) emitEffects(events, effects)
}

function emitRun(events: Events, run: SettledRun): void {
  const { tenantId, projectId, scheduleId, targetKind, scheduledFor, runId, attempt, state, reason, dueAt } = run
  const slot = { tenantId, projectId, scheduleId, targetKind, scheduledFor }
  if (state === 'skipped') {
    if (reason !== null) events.emit('slot.skipped', { ...slot, reason })
  } else if (state === 'detached') {
    events.emit('run.detached', { ...slot, runId, attempt, deadlineAt: dueAt ?? run.settledAt })
  } else {
    const durationMs = run.settledAt - run.startedAt
    events.emit('attempt.settled', { ...slot, runId, attempt, state, retryAt: dueAt, durationMs })
  }
  if (!run.isAutoPaused) return
  const paused = { tenantId, projectId, scheduleId, actor: SYSTEM_SUBJECT, reason: AUTO_PAUSE_REASON }
  events.emit('schedule.paused', paused)
}

function toText(value: Json): string | null {
  return value === null ? null : JSON.stringify(value)
}

function errorText(error: AttemptError): string {
  return JSON.stringify(error)
}
