import type { Preview } from '@carillon/api'
import type { Preview as CorePreview } from '@carillon/core'

import { toInstant } from './instant.ts'
import { toSlot } from './slot.ts'

export function toPreview({ description, slots, warnings }: CorePreview): Preview {
  return {
    description,
    slots: slots.map(toSlot),
    warnings: warnings.map(({ at, ...warning }) => ({ ...warning, at: toInstant(at) })),
  }
}
