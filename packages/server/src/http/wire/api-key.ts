import type { ApiKey } from '@carillon/api'
import type { ApiKey as CoreApiKey } from '@carillon/core'

import { toInstant, toInstantOrNull } from './instant.ts'

export function toApiKey(apiKey: CoreApiKey): ApiKey {
  return {
    id: apiKey.id,
    tenant: apiKey.tenantId,
    project: apiKey.projectId,
    subject: apiKey.subject,
    role: apiKey.role,
    prefix: apiKey.prefix,
    createdBy: apiKey.createdBy,
    createdAt: toInstant(apiKey.createdAt),
    revokedBy: apiKey.revokedBy,
    revokedAt: toInstantOrNull(apiKey.revokedAt),
  }
}
