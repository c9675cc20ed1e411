import { DST_EFFECTS, DST_WARNING_CODES } from '@carillon/cadence/words'
import { z } from 'zod'

import { checkedByCore, component } from '../component.ts'
import { expected } from '../expected.ts'
import { PREVIEW_COUNT, SLOT_COUNT } from '../limits.ts'
import { cadence } from './cadence.ts'
import { instant, instantInput, wholeNumber } from './fields.ts'
import { countInput } from './page.ts'

/** One slot, as an instant and as local time. */
export const slot = z.object({
  scheduledFor: instant,
  local: z.string().meta({ description: 'The local time with offset and zone, as in RFC 9557.' }),
})

export const upcomingSlots = component(
  'UpcomingSlots',
  z.object({
    items: z.array(
      slot.extend({ isSkipped: z.boolean().meta({ description: 'True if a caller skipped it: it will not run.' }) }),
    ),
  }),
  'The slots of a cadence in a span of time.',
)

export const slotsQuery = z.strictObject({
  from: instantInput.optional().meta({ description: 'The slots begin at this instant. The default is now.' }),
  to: instantInput.optional(),
  limit: countInput(SLOT_COUNT)
    .optional()
    .meta({
      description: `The most slots of the answer, 1 to ${SLOT_COUNT.max}. The default is ${SLOT_COUNT.default}.`,
    }),
})

export const slotRequest = component(
  'SlotRequest',
  z.strictObject({ scheduledFor: instantInput }, expected('an object')),
  'Names one slot.',
)

export const previewRequest = component(
  'PreviewRequest',
  z.strictObject(
    {
      cadence: checkedByCore(cadence),
      from: instantInput.optional().meta({ description: 'The slots begin at this instant. The default is now.' }),
      count: wholeNumber(PREVIEW_COUNT)
        .optional()
        .meta({ description: `The most slots of the answer. The default is ${PREVIEW_COUNT.default}.` }),
    },
    expected('an object'),
  ),
)

/** What a cadence will do: its description, its next slots and its warnings. */
export const outlook = {
  description: z.string().meta({ description: 'The cadence in plain English.' }),
  slots: z.array(z.object({ scheduledFor: instant, local: z.string() })),
  warnings: z
    .array(
      z.object({
        code: z.enum(DST_WARNING_CODES),
        at: instant.meta({ description: 'When daylight saving begins or ends.' }),
        local: z.string().meta({ description: 'The first local time that is affected.' }),
        count: z.int(),
        effect: z.enum(DST_EFFECTS),
        message: z.string(),
      }),
    )
    .meta({ description: 'The changes of daylight saving in the next two years that affect the cadence.' }),
}

export const preview = component('Preview', z.object(outlook), 'What a cadence would do.')

export type Preview = z.infer<typeof preview>
