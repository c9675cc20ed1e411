import { z } from 'zod'

import { component } from '../component.ts'
import { expected } from '../expected.ts'

export const purgeCounts = component(
  'PurgeCounts',
  z.object({
    schedules: z.int(),
    runs: z.int(),
    attempts: z.int(),
    changes: z.int().meta({ description: 'Who did what to the schedules.' }),
    revisions: z.int(),
    grants: z.int(),
    secrets: z.int(),
    members: z.int().meta({ description: 'Those whose entry takes nothing away. The others stay.' }),
    idempotentAnswers: z.int(),
  }),
  'How much of a project there is to remove, or was removed.',
)

export const purgeRequest = component(
  'PurgeRequest',
  z.strictObject(
    { name: z.string(expected('the name of the project')).meta({ description: 'Of the project, once more.' }) },
    expected('an object'),
  ),
)

export type PurgeRequest = z.input<typeof purgeRequest>
export type PurgeCounts = z.infer<typeof purgeCounts>
