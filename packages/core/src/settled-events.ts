import type { Events } from './events.ts'
import { AUTO_PAUSE_REASON } from './policy/auto-pause.ts'
import type { Settled } from './store/settle.ts'

/** Tells what was settled, and what followed from it: the same whether its own worker wrote it or a rescuer. */
export function tellSettled(events: Events, run: Settled): void {
  const { tenantId, projectId, scheduleId, targetKind, scheduledFor, runId, attempt, state, retryAt } = run
  events.emit('attempt.settled', {
    tenantId,
    projectId,
    scheduleId,
    targetKind,
    scheduledFor,
    runId,
    attempt,
    state,
    retryAt,
    durationMs: run.settledAt - run.startedAt,
  })
  if (!run.isAutoPaused) return
  const reason = AUTO_PAUSE_REASON
  events.emit('schedule.paused', { tenantId, projectId, scheduleId, actor: 'system:carillon', reason })
}
