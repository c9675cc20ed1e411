import { z } from 'zod'

import { checkedByCore, component } from '../component.ts'
import { expected } from '../expected.ts'
import { cadence } from './cadence.ts'
import { instant, instantInput } from './instant.ts'
import { policy } from './policy.ts'
import { target } from './target.ts'

const COUNT = expected('a whole number from 1 to 100')

export const previewRequest = component(
  'PreviewRequest',
  z.strictObject(
    {
      cadence: checkedByCore(cadence),
      from: instantInput.optional().meta({ description: 'Without it now.' }),
      count: z.int(COUNT).min(1, COUNT).max(100, COUNT).optional().meta({ description: 'Without it 5.' }),
    },
    expected('an object'),
  ),
)

const outlook = {
  description: z.string().meta({ description: 'The cadence in plain English.' }),
  slots: z.array(z.object({ scheduledFor: instant, local: z.string() })),
  warnings: z
    .array(
      z.object({
        code: z.enum(['dst_gap', 'dst_fold']),
        at: instant.meta({ description: 'When the clocks change.' }),
        local: z.string().meta({ description: 'The first local time concerned.' }),
        count: z.int(),
        effect: z.enum(['shifted', 'skipped', 'first_pass', 'second_pass', 'both_passes']),
        message: z.string(),
      }),
    )
    .meta({ description: 'Changes of the clocks in the next two years that touch it.' }),
}

export const preview = component('Preview', z.object(outlook), 'What a cadence would do.')

export const schedulePreview = component(
  'SchedulePreview',
  z.object({
    name: z.string(),
    cadence,
    target,
    policy,
    grantId: z.uuid().nullable().meta({ description: 'Null: a grant of its own.' }),
    ownerSubject: z.string(),
    ...outlook,
  }),
  'What a create would make, with every default filled in.',
)

export type Preview = z.infer<typeof preview>
export type SchedulePreview = z.infer<typeof schedulePreview>
