import { foundText } from '@carillon/api'
import type { TenantLimitsInput } from '@carillon/core'

import { logChange } from '../change-log.ts'
import { naming } from '../field-names.ts'
import type { HandlersOf } from '../handler.ts'
import { ProblemError } from '../problems/problem-error.ts'
import { toTenant } from '../wire/tenant.ts'

const NAMES = { tenant: 'path.id' }

export const tenantHandlers: HandlersOf<'getTenant' | 'putTenant'> = {
  getTenant: async ({ service: { tenants }, identity: { isInstallation, caller }, params: { id } }) => {
    // I9: another tenant is not even known to exist.
    if (!isInstallation && id !== caller.tenantId) {
      throw new ProblemError('tenant_not_found', `expected the tenant of the key that asks, got ${foundText(id)}`)
    }
    return { body: toTenant(await naming(NAMES, () => tenants.get(id))) }
  },

  putTenant: async ({ service: { tenants, logger }, caller, params: { id }, body }) => {
    // Whatever it is: the core checks it.
    const tenant = await naming(NAMES, () => tenants.put(caller.subject, id, body as TenantLimitsInput))
    const { tenantId, updatedBy: _actor, updatedAt: _at, ...limits } = tenant
    logChange(logger, 'tenant.put', { tenantId, projectId: null, subject: caller.subject }, limits)
    return { body: toTenant(tenant) }
  },
}
