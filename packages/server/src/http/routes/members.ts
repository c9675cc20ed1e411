import { logChange } from '../change-log.ts'
import { naming } from '../field-names.ts'
import type { HandlersOf } from '../handler.ts'
import { byName, readPage } from '../page.ts'
import { toMember } from '../wire/member.ts'

const LIST = byName('members')

export const memberHandlers: HandlersOf<'listMembers' | 'putMember' | 'removeMember'> = {
  listMembers: async ({ service: { members }, caller, query }) => {
    const { items, nextCursor } = await readPage(query, {
      kind: LIST,
      fetch: ({ before: after, limit }) => members.list(caller, after === undefined ? { limit } : { after, limit }),
      positionOf: ({ subject }) => subject,
    })
    return { body: { items: items.map(toMember), nextCursor } }
  },

  putMember: async ({ service: { members, logger }, caller, params: { id }, body: { role } }) => {
    const member = await naming({ subject: 'path.id' }, () => members.put(caller, id, role))
    logChange(logger, 'member.put', caller, { subject: member.subject, role: member.role })
    return { body: toMember(member) }
  },

  removeMember: async ({ service: { members, logger }, caller, params: { id } }) => {
    const member = await naming({ subject: 'path.id' }, () => members.remove(caller, id))
    logChange(logger, 'member.removed', caller, { subject: member.subject })
    return { body: toMember(member) }
  },
}
