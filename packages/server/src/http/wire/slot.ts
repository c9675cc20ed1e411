import type { SlotPreview } from '@carillon/core'

import { toInstant } from './instant.ts'

/** Whatever else is told of a slot stays. */
export function toSlot<Slot extends SlotPreview>({
  scheduledFor,
  ...rest
}: Slot): Omit<Slot, 'scheduledFor'> & { scheduledFor: string } {
  return { ...rest, scheduledFor: toInstant(scheduledFor) }
}
