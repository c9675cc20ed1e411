import type { ScheduleInput } from '@carillon/core'

import type { HandlersOf } from '../handler.ts'
import { toSchedulePreview } from '../wire/preview.ts'

export const scheduleBatchHandlers: HandlersOf<'createSchedules' | 'previewSchedules'> = {
  createSchedules: async ({ service: { scheduler }, caller, headers, body }) => {
    const key = headers['idempotency-key']
    // Whatever each of them is: the core checks it.
    const inputs = body.schedules as readonly ScheduleInput[]
    const { ids, isReplayed } =
      key === undefined
        ? { ids: await scheduler.createMany(caller, inputs), isReplayed: false }
        : await scheduler.createManyOnce(caller, inputs, key)
    return { body: { ids: [...ids] }, headers: isReplayed ? { 'idempotency-replayed': 'true' } : {} }
  },

  previewSchedules: async ({ service: { scheduler }, caller, body }) => {
    const plans = await scheduler.planCreateMany(caller, body.schedules)
    return { body: { items: plans.map(toSchedulePreview) } }
  },
}
