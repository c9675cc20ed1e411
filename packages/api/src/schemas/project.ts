import { z } from 'zod'

import { component } from '../component.ts'
import { expected } from '../expected.ts'

export const purgeCounts = component(
  'PurgeCounts',
  z.object({
    schedules: z.int(),
    runs: z.int(),
    attempts: z.int(),
    transcriptLines: z.int().meta({ description: 'Lines of the transcripts of runs.' }),
    changes: z.int().meta({ description: 'Entries in the history of the schedules.' }),
    revisions: z.int(),
    grants: z.int(),
    secrets: z.int(),
    members: z.int().meta({
      description:
        'Admins that were not removed. The entries of other members stay, because they limit what a subject may do.',
    }),
    idempotentAnswers: z.int(),
    moduleRows: z.int().meta({ description: 'Rows in the tables of modules.' }),
  }),
  'How many rows of a project a purge would remove, or removed.',
)

export const purgeRequest = component(
  'PurgeRequest',
  z.strictObject(
    {
      name: z.string(expected('the name of the project')).meta({ description: 'The name of the project, to confirm.' }),
    },
    expected('an object'),
  ),
)

export type PurgeCounts = z.infer<typeof purgeCounts>
