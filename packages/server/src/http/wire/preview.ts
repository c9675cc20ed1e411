import type { Preview, SchedulePreview } from '@carillon/api'
import type { CreatePlan, Preview as CorePreview } from '@carillon/core'

import { toInstant } from './instant.ts'
import { toSlot } from './slot.ts'

export function toPreview({ description, slots, warnings }: CorePreview): Preview {
  return {
    description,
    slots: slots.map(toSlot),
    warnings: warnings.map(({ at, ...warning }) => ({ ...warning, at: toInstant(at) })),
  }
}

export function toSchedulePreview(plan: CreatePlan): SchedulePreview {
  const { name, target, policy, grantId, ownerSubject } = plan
  // The same but for lists that are not to be changed.
  const cadence = plan.cadence as SchedulePreview['cadence']
  return { name, cadence, target, policy, grantId, ownerSubject, ...toPreview(plan) }
}
