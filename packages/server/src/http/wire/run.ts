import { explainRun, type Run, type RunWithAttempts } from '@carillon/api'
import type { Attempt, Run as CoreRun } from '@carillon/core'

import { toInstant, toInstantOrNull } from './instant.ts'

export function toRun(run: CoreRun): Run {
  return {
    id: run.id,
    scheduleId: run.scheduleId,
    scheduledFor: toInstant(run.scheduledFor),
    revision: run.revision,
    trigger: run.trigger,
    state: run.state,
    reason: run.reason,
    explanation: explainRun(run),
    // A run-now takes the next free instant for its slot, which may lie a moment ahead.
    latenessMs: Math.max(0, run.begunAt - run.scheduledFor),
    attemptCount: run.attemptCount,
    begunAt: toInstant(run.begunAt),
    startedAt: toInstantOrNull(run.startedAt),
    waitsFor: run.waitsFor,
    retryAt: toInstantOrNull(run.retryAt),
    cancelRequestedAt: toInstantOrNull(run.cancelRequestedAt),
    completedAt: toInstantOrNull(run.completedAt),
    error: run.error,
  }
}

export function toRunWithAttempts(run: CoreRun & { readonly attempts: readonly Attempt[] }): RunWithAttempts {
  return { ...toRun(run), attempts: run.attempts.map(toAttempt) }
}

function toAttempt({ startedAt, completedAt, ...attempt }: Attempt): RunWithAttempts['attempts'][number] {
  return { ...attempt, startedAt: toInstant(startedAt), completedAt: toInstant(completedAt) }
}
