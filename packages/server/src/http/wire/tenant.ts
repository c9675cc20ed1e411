import type { Tenant } from '@carillon/api'
import type { TenantLimits } from '@carillon/core'

import { toInstantOrNull } from './instant.ts'

export function toTenant({ tenantId, allowedHosts, updatedAt, ...limits }: TenantLimits): Tenant {
  return {
    tenant: tenantId,
    ...limits,
    allowedHosts: allowedHosts === null ? null : [...allowedHosts],
    updatedAt: toInstantOrNull(updatedAt),
  }
}
