import { ADMIN_KEY_PHRASE } from '@carillon/api'
import type { Caller } from '@carillon/core'

import type { Identity } from '../../auth/identity.ts'
import { wallNow } from '../../clock.ts'
import { logChange } from '../change-log.ts'
import type { HandlersOf } from '../operation-handlers.ts'
import { cursorById, byName, readPage } from '../paging.ts'
import { ProblemError, withRenamedFields } from '../problems.ts'
import { toApiKey, toGrant, toMember, toSecret } from '../wire.ts'

const GRANTS = cursorById('grants')
const KEYS = cursorById('keys')
const MEMBERS = byName('members')
const SECRETS = byName('secrets')

type GrantOperation = 'createGrant' | 'listGrants' | 'getGrant' | 'renewGrant' | 'revokeGrant'
type KeyOperation = 'createKey' | 'listKeys' | 'revokeKey'
type MemberOperation = 'listMembers' | 'putMember' | 'removeMember'
type SecretOperation = 'listSecrets' | 'putSecret' | 'deleteSecret'

const grantHandlers: HandlersOf<GrantOperation> = {
  createGrant: async ({ service: { grants, clock, logger }, caller, body: { expiresAt, ...input } }) => {
    const grant = await grants.create(caller, { ...input, expiresAt: toEpochMs(expiresAt ?? null) })
    logChange(logger, 'grant.created', caller, { grantId: grant.id, subject: grant.subject })
    return { body: toGrant(grant, wallNow(clock)) }
  },

  listGrants: async ({ service: { grants, clock }, caller, query }) => {
    const { items, nextCursor } = await readPage(query, {
      kind: GRANTS,
      fetch: (page) => grants.list(caller, page),
      positionOf: ({ id }) => id,
    })
    const now = wallNow(clock)
    return { body: { items: items.map((grant) => toGrant(grant, now)), nextCursor } }
  },

  getGrant: async ({ service: { grants, clock }, caller, params: { id } }) => ({
    body: toGrant(await grants.get(caller, id), wallNow(clock)),
  }),

  renewGrant: async ({ service: { grants, clock, logger }, caller, params: { id }, body: { expiresAt } }) => {
    const grant = await grants.renew(caller, id, { expiresAt: toEpochMs(expiresAt) })
    logChange(logger, 'grant.renewed', caller, { grantId: grant.id, expiresAt: grant.expiresAt })
    return { body: toGrant(grant, wallNow(clock)) }
  },

  revokeGrant: async ({ service: { grants, clock, logger }, caller, params: { id } }) => {
    const grant = await grants.revoke(caller, id)
    logChange(logger, 'grant.revoked', caller, { grantId: grant.id })
    return { body: toGrant(grant, wallNow(clock)) }
  },
}

const keyHandlers: HandlersOf<KeyOperation> = {
  createKey: async ({ service: { keys, logger }, identity, caller, body: { subject, role, ...scope } }) => {
    const scoped = callerIn(identity, scope)
    const { tenantId, projectId } = scoped
    const { apiKey, secret } = await keys.create(caller, { tenantId, projectId, subject, role })
    logChange(logger, 'key.created', scoped, { keyId: apiKey.id, subject, role })
    return { body: { ...toApiKey(apiKey), key: secret } }
  },

  listKeys: async ({ service: { keys }, identity, query: { tenant, project, ...query } }) => {
    const scoped = callerIn(identity, { tenant, project })
    const { items, nextCursor } = await readPage(query, {
      kind: KEYS,
      fetch: (page) => keys.list(scoped, page),
      positionOf: ({ id }) => id,
    })
    return { body: { items: items.map(toApiKey), nextCursor } }
  },

  revokeKey: async ({ service: { keys, logger }, identity, params: { id }, query }) => {
    const scoped = callerIn(identity, query)
    const apiKey = await keys.revoke(scoped, id)
    logChange(logger, 'key.revoked', scoped, { keyId: apiKey.id })
    return { body: toApiKey(apiKey) }
  },
}

const memberHandlers: HandlersOf<MemberOperation> = {
  listMembers: async ({ service: { members }, caller, query }) => {
    const { items, nextCursor } = await readPage(query, {
      kind: MEMBERS,
      fetch: ({ before: after, limit }) => members.list(caller, after === undefined ? { limit } : { after, limit }),
      positionOf: ({ subject }) => subject,
    })
    return { body: { items: items.map(toMember), nextCursor } }
  },

  putMember: async ({ service: { members, logger }, caller, params: { id }, body: { role } }) => {
    const member = await members.put(caller, id, role)
    logChange(logger, 'member.put', caller, { subject: member.subject, role: member.role })
    return { body: toMember(member) }
  },

  removeMember: async ({ service: { members, logger }, caller, params: { id } }) => {
    const member = await withRenamedFields({ subject: 'path.id' }, () => members.remove(caller, id))
    logChange(logger, 'member.removed', caller, { subject: member.subject })
    return { body: toMember(member) }
  },
}

const secretHandlers: HandlersOf<SecretOperation> = {
  listSecrets: async ({ service: { secrets }, caller, query }) => {
    const { items, nextCursor } = await readPage(query, {
      kind: SECRETS,
      fetch: ({ before: after, limit }) => secrets.list(caller, after === undefined ? { limit } : { after, limit }),
      positionOf: ({ name }) => name,
    })
    return { body: { items: items.map(toSecret), nextCursor } }
  },

  putSecret: async ({ service: { secrets, logger }, caller, params: { id }, body: { value } }) => {
    const secret = await secrets.put(caller, id, value)
    logChange(logger, 'secret.put', caller, { name: secret.name, version: secret.version })
    return { body: toSecret(secret) }
  },

  deleteSecret: async ({ service: { secrets, logger }, caller, params: { id } }) => {
    const { name } = await secrets.delete(caller, id)
    logChange(logger, 'secret.deleted', caller, { name })
    return { body: undefined }
  },
}

/** Access control within a project: grants, API keys, members and secrets. */
export const accessHandlers: HandlersOf<GrantOperation | KeyOperation | MemberOperation | SecretOperation> = {
  ...grantHandlers,
  ...keyHandlers,
  ...memberHandlers,
  ...secretHandlers,
}

/** The caller in the scope that a request names. I9: only the installation may name a scope other than its own. */
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
  const detail = `expected the tenant and project of the calling key, got others: use ${ADMIN_KEY_PHRASE}`
  throw new ProblemError('admin_key_required', detail)
}

function toEpochMs(instant: string | null): number | null {
  return instant === null ? null : Date.parse(instant)
}
