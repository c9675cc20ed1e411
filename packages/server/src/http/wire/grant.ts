import type { Grant } from '@carillon/api'
import type { Grant as CoreGrant } from '@carillon/core'

import { grantWarning } from './grant-warning.ts'
import { toInstant, toInstantOrNull } from './instant.ts'

/** @param now what warnings are told by, in epoch milliseconds */
export function toGrant(grant: CoreGrant, now: number): Grant {
  return {
    id: grant.id,
    subject: grant.subject,
    scopes: [...grant.scopes],
    billingAccountId: grant.billingAccountId,
    scheduleId: grant.scheduleId,
    expiresAt: toInstantOrNull(grant.expiresAt),
    warning: grantWarning({ expiresAt: grant.expiresAt, isRevoked: grant.revokedAt !== null }, now),
    revokedAt: toInstantOrNull(grant.revokedAt),
    revokedBy: grant.revokedBy,
    createdBy: grant.createdBy,
    createdAt: toInstant(grant.createdAt),
  }
}
