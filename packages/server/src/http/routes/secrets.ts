import { logChange } from '../change-log.ts'
import { naming } from '../field-names.ts'
import type { HandlersOf } from '../handler.ts'
import { byName, readPage } from '../page.ts'
import { toSecret } from '../wire/secret.ts'

const LIST = byName('secrets')

export const secretHandlers: HandlersOf<'listSecrets' | 'putSecret' | 'deleteSecret'> = {
  listSecrets: async ({ service: { secrets }, caller, query }) => {
    const { items, nextCursor } = await readPage(query, {
      kind: LIST,
      fetch: ({ before: after, limit }) => secrets.list(caller, after === undefined ? { limit } : { after, limit }),
      positionOf: ({ name }) => name,
    })
    return { body: { items: items.map(toSecret), nextCursor } }
  },

  putSecret: async ({ service: { secrets, logger }, caller, params: { id }, body: { value } }) => {
    const secret = await naming({ name: 'path.id' }, () => secrets.put(caller, id, value))
    logChange(logger, 'secret.put', caller, { name: secret.name, version: secret.version })
    return { body: toSecret(secret) }
  },

  deleteSecret: async ({ service: { secrets, logger }, caller, params: { id } }) => {
    const { name } = await secrets.delete(caller, id)
    logChange(logger, 'secret.deleted', caller, { name })
    return { body: undefined }
  },
}
