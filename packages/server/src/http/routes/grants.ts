import { logChange } from '../change-log.ts'
import type { HandlersOf } from '../handler.ts'
import { byId, readPage } from '../page.ts'
import { wallNow } from '../wall-clock.ts'
import { toGrant } from '../wire/grant.ts'

const LIST = byId('grants')

export const grantHandlers: HandlersOf<'createGrant' | 'listGrants' | 'getGrant' | 'renewGrant' | 'revokeGrant'> = {
  createGrant: async ({ service: { grants, clock, logger }, caller, body: { expiresAt, ...input } }) => {
    const grant = await grants.create(caller, { ...input, expiresAt: toEpochMs(expiresAt ?? null) })
    logChange(logger, 'grant.created', caller, { grantId: grant.id, subject: grant.subject })
    return { body: toGrant(grant, wallNow(clock)) }
  },

  listGrants: async ({ service: { grants, clock }, caller, query }) => {
    const { items, nextCursor } = await readPage(query, {
      kind: LIST,
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

function toEpochMs(instant: string | null): number | null {
  return instant === null ? null : Date.parse(instant)
}
