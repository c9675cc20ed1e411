import type { Member } from '@carillon/api'
import type { Member as CoreMember } from '@carillon/core'

import { toInstant, toInstantOrNull } from './instant.ts'

export function toMember({ subject, role, addedBy, addedAt, removedBy, removedAt }: CoreMember): Member {
  return { subject, role, addedBy, addedAt: toInstant(addedAt), removedBy, removedAt: toInstantOrNull(removedAt) }
}
