import type { EditPlan } from '@carillon/api'
import type { EditPlan as CoreEditPlan } from '@carillon/core'

import { toInstantOrNull } from './instant.ts'
import { toSchedule } from './schedule.ts'
import { toSlot } from './slot.ts'

export function toEditPlan({ schedule, added, removed, comparedUntil }: CoreEditPlan, now: number): EditPlan {
  return {
    schedule: toSchedule(schedule, now),
    added: added.map(toSlot),
    removed: removed.map(toSlot),
    comparedUntil: toInstantOrNull(comparedUntil),
  }
}
