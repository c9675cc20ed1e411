import type { Jobs } from '../engine.ts'
import { jobKey } from '../keys.ts'
import { addJobs, removeJobs, requestJobs, withdrawJobs } from '../store/jobs.ts'
import type { SlotName } from '../store/waiting-runs.ts'

/** One task per kind of target, so that a worker fetches no job it cannot serve. */
export function attemptTask(targetKind: string): string {
  return `attempt.${targetKind}`
}

/** Jobs kept by Graphile Worker, in a worker's own transactions. No named queues: overlap is decided at begin. */
export const slotJobs: Jobs = {
  async enqueue(tx, slots) {
    if (slots.length === 0) return
    await addJobs(tx, {
      jobs: slots.map(({ scheduleId, scheduledFor, targetKind, runAt }) => ({
        task: attemptTask(targetKind),
        key: jobKey(scheduleId, scheduledFor),
        payload: { scheduleId, scheduledFor: new Date(scheduledFor).toISOString() },
        runAt,
      })),
    })
  },
  async withdraw(tx, slots) {
    if (slots.length === 0) return
    await removeJobs(tx, { keys: slots.map(({ scheduleId, scheduledFor }) => jobKey(scheduleId, scheduledFor)) })
  },
}

/** The same jobs for transactions of the API, behind the wall of one project (I9). */
export const walledSlotJobs: Jobs = {
  async enqueue(tx, slots) {
    if (slots.length === 0) return
    await requestJobs(tx, { slots: slots.map((slot) => ({ ...jobOf(slot), runAt: toIso(slot.runAt) })) })
  },
  async withdraw(tx, slots) {
    if (slots.length === 0) return
    await withdrawJobs(tx, { slots: slots.map(jobOf) })
  },
}

function jobOf({ scheduleId, scheduledFor, targetKind }: SlotName) {
  return { scheduleId, scheduledFor: new Date(scheduledFor).toISOString(), targetKind }
}

function toIso(instant: number | null): string | null {
  return instant === null ? null : new Date(instant).toISOString()
}
