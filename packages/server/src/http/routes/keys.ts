import type { HandlersOf } from '../handler.ts'
import type { Identity } from '../identity.ts'
import { byId, readPage } from '../page.ts'
import { ProblemError } from '../problems/problem-error.ts'
import { toApiKey } from '../wire/api-key.ts'

const LIST = byId('keys')

export const keyHandlers: HandlersOf<'createKey' | 'listKeys' | 'revokeKey'> = {
  createKey: async ({
    service: { keys },
    identity,
    caller,
    body: { tenant = caller.tenantId, project, subject, role },
  }) => {
    requirePlace(identity, tenant, project)
    const { apiKey, secret } = await keys.create(caller, { tenantId: tenant, projectId: project, subject, role })
    return { body: { ...toApiKey(apiKey), key: secret } }
  },

  listKeys: async ({ service: { keys }, caller, query }) => {
    const { items, nextCursor } = await readPage(query, {
      kind: LIST,
      fetch: (page) => keys.list(caller, page),
      positionOf: ({ id }) => id,
    })
    return { body: { items: items.map(toApiKey), nextCursor } }
  },

  revokeKey: async ({ service: { keys }, caller, params: { id } }) => ({
    body: toApiKey(await keys.revoke(caller, id)),
  }),
}

/** I9: nobody makes a key to another tenant or project than their own, but for the installation. */
function requirePlace({ isInstallation, caller }: Identity, tenant: string, project: string): void {
  if (isInstallation || (tenant === caller.tenantId && project === caller.projectId)) return
  const detail = 'expected the tenant and project of the key that asks, got others: use the key of the installation'
  throw new ProblemError('forbidden', detail)
}
