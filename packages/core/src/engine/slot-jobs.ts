import type { Jobs } from '../engine.ts'
import { jobKey } from '../keys.ts'
import { addJobs, removeJobs } from '../store/jobs.ts'

/** One task per kind of target, so that a worker fetches no job it cannot serve. */
export function attemptTask(targetKind: string): string {
  return `attempt.${targetKind}`
}

/** Jobs kept by Graphile Worker, in our own transactions. No named queues: overlap is decided at begin. */
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
