import type { HandlersOf } from '../handler.ts'
import { toInstant } from '../wire/instant.ts'
import { toSlot } from '../wire/slot.ts'

export const cadenceHandlers: HandlersOf<'previewCadence'> = {
  previewCadence: async ({ service: { scheduler }, body: { cadence, from, count } }) => {
    const { description, slots, warnings } = await scheduler.preview({
      cadence,
      ...(from === undefined ? {} : { from: Date.parse(from) }),
      ...(count === undefined ? {} : { count }),
    })
    return {
      body: {
        description,
        slots: slots.map(toSlot),
        warnings: warnings.map(({ at, ...warning }) => ({ ...warning, at: toInstant(at) })),
      },
    }
  },
}
