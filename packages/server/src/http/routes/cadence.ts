import type { HandlersOf } from '../handler.ts'
import { toPreview } from '../wire/preview.ts'

export const cadenceHandlers: HandlersOf<'previewCadence'> = {
  previewCadence: async ({ service: { scheduler }, body: { cadence, from, count } }) => {
    const preview = await scheduler.preview({
      cadence,
      ...(from === undefined ? {} : { from: Date.parse(from) }),
      ...(count === undefined ? {} : { count }),
    })
    return { body: toPreview(preview) }
  },
}
