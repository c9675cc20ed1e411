import { z } from 'zod'

import { checkedByCore, component } from '../component.ts'
import { expected } from '../expected.ts'
import { schedulePreview } from './preview.ts'
import { scheduleInput } from './schedule.ts'

/** How many schedules a request may hold. */
export const BATCH_MAX = 1000

const LIST = expected(`a list of 1 to ${BATCH_MAX} schedules`)

export const scheduleBatch = component(
  'ScheduleBatch',
  z.strictObject(
    {
      schedules: z
        .array(checkedByCore(scheduleInput), LIST)
        .min(1, LIST)
        .max(BATCH_MAX, { error: ({ input }) => `expected at most ${BATCH_MAX} schedules, got ${countOf(input)}` }),
    },
    expected('an object'),
  ),
  'Schedules to be made together. The whole body is held to the limit of any other, a little more than 1 MiB.',
)

export const createdBatch = component(
  'CreatedBatch',
  z.object({ ids: z.array(z.uuid()).meta({ description: 'In the order of the schedules that were asked for.' }) }),
)

export const previewedBatch = component(
  'PreviewedBatch',
  z.object({
    items: z.array(schedulePreview).meta({ description: 'In the order of the schedules that were asked for.' }),
  }),
)

function countOf(input: unknown): string {
  return Array.isArray(input) ? String(input.length) : 'more'
}
