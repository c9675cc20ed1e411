import type { Grant } from '@carillon/api'
import type { Grant as CoreGrant } from '@carillon/core'

import { toInstant, toInstantOrNull } from './instant.ts'

export function toGrant(grant: CoreGrant): Grant {
  return {
    id: grant.id,
    subject: grant.subject,
    scopes: [...grant.scopes],
    billingAccountId: grant.billingAccountId,
    expiresAt: toInstantOrNull(grant.expiresAt),
    revokedAt: toInstantOrNull(grant.revokedAt),
    revokedBy: grant.revokedBy,
    createdBy: grant.createdBy,
    createdAt: toInstant(grant.createdAt),
  }
}
