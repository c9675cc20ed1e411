import { INSTALLATION_KEY } from '@carillon/api'
import type { Caller } from '@carillon/core'

import { logChange } from '../change-log.ts'
import type { HandlersOf } from '../handler.ts'
import type { Identity } from '../identity.ts'
import { byId, readPage } from '../page.ts'
import { ProblemError } from '../problems/problem-error.ts'
import { toApiKey } from '../wire/api-key.ts'

const LIST = byId('keys')

export const keyHandlers: HandlersOf<'createKey' | 'listKeys' | 'revokeKey'> = {
  createKey: async ({ service: { keys, logger }, identity, caller, body: { subject, role, ...place } }) => {
    const within = callerIn(identity, place)
    const { tenantId, projectId } = within
    const { apiKey, secret } = await keys.create(caller, { tenantId, projectId, subject, role })
    logChange(logger, 'key.created', within, { keyId: apiKey.id, subject, role })
    return { body: { ...toApiKey(apiKey), key: secret } }
  },

  listKeys: async ({ service: { keys }, identity, query: { tenant, project, ...query } }) => {
    const caller = callerIn(identity, { tenant, project })
    const { items, nextCursor } = await readPage(query, {
      kind: LIST,
      fetch: (page) => keys.list(caller, page),
      positionOf: ({ id }) => id,
    })
    return { body: { items: items.map(toApiKey), nextCursor } }
  },

  revokeKey: async ({ service: { keys, logger }, identity, params: { id }, query }) => {
    const within = callerIn(identity, query)
    const apiKey = await keys.revoke(within, id)
    logChange(logger, 'key.revoked', within, { keyId: apiKey.id })
    return { body: toApiKey(apiKey) }
  },
}

/** Whoever asks, in a place. I9: nobody gets at the keys of another tenant or project than their own, but for the installation. */
function callerIn(
  { isInstallation, caller }: Identity,
  {
    tenant = caller.tenantId,
    project = caller.projectId,
  }: { tenant?: string | undefined; project?: string | undefined },
): Caller {
  if (isInstallation || (tenant === caller.tenantId && project === caller.projectId)) {
    return { ...caller, tenantId: tenant, projectId: project }
  }
  const detail = `expected the tenant and project of the key that asks, got others: use ${INSTALLATION_KEY}`
  throw new ProblemError('forbidden', detail)
}
