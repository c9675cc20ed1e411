import { foundText } from '@carillon/api'

import { logChange } from '../change-log.ts'
import type { HandlersOf } from '../operation-handlers.ts'
import { ProblemError, withRenamedFields } from '../problems.ts'
import { toTenant } from '../wire.ts'

const NAMES = { tenant: 'path.id' }

/** Handlers that read and set the limits of tenants, and that delete what a project holds. */
export const tenantHandlers: HandlersOf<
  'getTenant' | 'putTenant' | 'deleteProjectSchedules' | 'previewPurge' | 'purgeProject'
> = {
  getTenant: async ({ service: { tenants }, identity: { isInstallation, caller }, params: { id } }) => {
    // I9: a caller must not learn whether another tenant exists.
    if (!isInstallation && id !== caller.tenantId) {
      throw new ProblemError('tenant_not_found', `expected the tenant of the calling key, got ${foundText(id)}`)
    }
    return { body: toTenant(await withRenamedFields(NAMES, () => tenants.get(id))) }
  },

  putTenant: async ({ service: { tenants, logger }, caller, params: { id }, body }) => {
    const tenant = await tenants.put(caller.subject, id, body)
    const { tenantId, updatedBy: _actor, updatedAt: _at, ...limits } = tenant
    logChange(logger, 'tenant.put', { tenantId, projectId: null, subject: caller.subject }, limits)
    return { body: toTenant(tenant) }
  },

  deleteProjectSchedules: async ({ service: { scheduler }, caller }) => ({
    body: { ...(await scheduler.deleteProject(caller)) },
  }),

  previewPurge: async ({ service: { projects }, caller }) => ({
    body: { ...(await projects.previewPurge(caller)) },
  }),

  purgeProject: async ({ service: { projects, logger }, caller, body }) => {
    const removed = await projects.purge(caller, body)
    logChange(logger, 'project.purged', caller, { ...removed })
    return { body: { ...removed } }
  },
}
