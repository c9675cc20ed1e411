import type { Events } from './events.ts'
import { AUTO_PAUSE_REASON } from './policy/auto-pause.ts'
import type { Settled } from './store/settle.ts'

/** Tells what was settled, and what followed from it: the same whether its own worker wrote it or a rescuer. */
export function tellSettled(events: Events, run: Settled): void {
  const { tenantId, projectId, scheduleId, targetKind, scheduledFor, runId, attempt, state, reason, dueAt } = run
  const slot = { tenantId, projectId, scheduleId, targetKind, scheduledFor }
  if (state === 'skipped') {
    if (reason !== null) events.emit('slot.skipped', { ...slot, reason })
  } else {
    const durationMs = run.settledAt - run.startedAt
    events.emit('attempt.settled', { ...slot, runId, attempt, state, retryAt: dueAt, durationMs })
  }
  if (!run.isAutoPaused) return
  events.emit('schedule.paused', {
    tenantId,
    projectId,
    scheduleId,
    actor: 'system:carillon',
    reason: AUTO_PAUSE_REASON,
  })
}
