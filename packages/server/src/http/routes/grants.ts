import type { HandlersOf } from '../handler.ts'
import { byId, readPage } from '../page.ts'
import { toGrant } from '../wire/grant.ts'

const LIST = byId('grants')

export const grantHandlers: HandlersOf<'createGrant' | 'listGrants' | 'revokeGrant'> = {
  createGrant: async ({ service: { grants }, caller, body: { expiresAt, ...input } }) => {
    const expiry = typeof expiresAt === 'string' ? { expiresAt: Date.parse(expiresAt) } : {}
    return { body: toGrant(await grants.create(caller, { ...input, ...expiry })) }
  },

  listGrants: async ({ service: { grants }, caller, query }) => {
    const { items, nextCursor } = await readPage(query, {
      kind: LIST,
      fetch: (page) => grants.list(caller, page),
      positionOf: ({ id }) => id,
    })
    return { body: { items: items.map(toGrant), nextCursor } }
  },

  revokeGrant: async ({ service: { grants }, caller, params: { id } }) => ({
    body: toGrant(await grants.revoke(caller, id)),
  }),
}
