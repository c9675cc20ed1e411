import { randomUUID } from 'node:crypto'

import { component, type OperationTable } from '@carillon/api'
import { MODULE_PORT, RequestRefusal, type ModuleCall, type ModuleManifest } from '@carillon/core'
import { z } from 'zod'

import type { ServedModule } from '../../src/http/served-operations.ts'

const ticket = component(
  'Ticket',
  z.object({ id: z.string(), queue: z.string(), title: z.string(), answer: z.string().nullable() }),
  'A question to a queue.',
)

type Ticket = z.infer<typeof ticket>

const queueParams = z.strictObject({ queue: z.string() })
const ticketParams = z.strictObject({ queue: z.string(), ticket: z.string() })
const title = z.string({ error: 'expected a title' }).min(1, { error: 'expected a title' })

/** The operations of a module: paths from the root, several parameters, own access, and own errors. */
export const ticketOperations = {
  createTicket: {
    method: 'post',
    prefix: '/v1',
    path: '/queues/{queue}/tickets',
    tag: 'ticket',
    summary: 'Create a ticket',
    role: 'admin',
    params: queueParams,
    body: component('TicketInput', z.strictObject({ title })),
    success: { status: 201, description: 'The ticket.', schema: ticket },
    problems: [],
  },
  getTicket: {
    method: 'get',
    prefix: '/v1',
    path: '/queues/{queue}/tickets/{ticket}',
    tag: 'ticket',
    summary: 'Get a ticket',
    role: 'member',
    params: ticketParams,
    success: { status: 200, description: 'The ticket.', schema: ticket },
    problems: ['not_found'],
  },
  deleteTicket: {
    method: 'delete',
    prefix: '/v1',
    path: '/queues/{queue}/tickets/{ticket}',
    tag: 'ticket',
    summary: 'Delete a ticket',
    role: 'admin',
    params: ticketParams,
    success: { status: 204, description: 'Deleted.' },
    problems: ['not_found'],
  },
  listProjectTickets: {
    method: 'get',
    prefix: '/api',
    path: '/projects/{project}/tickets',
    tag: 'ticket',
    summary: 'List the tickets of a project',
    role: 'member',
    projectParam: 'project',
    params: z.strictObject({ project: z.string() }),
    query: z.strictObject({ answered: z.enum(['true', 'false'], { error: 'expected true or false' }).optional() }),
    success: { status: 200, description: 'The tickets.', schema: z.object({ items: z.array(ticket) }) },
    problems: [],
    errors: {
      schema: z.object({ error: z.object({ code: z.string(), message: z.string() }) }),
      toBody: ({ code, detail }) => ({ error: { code: code.toUpperCase(), message: detail } }),
    },
  },
  answerTicket: {
    method: 'post',
    path: '/tickets/{ticket}/answer',
    tag: 'ticket',
    summary: 'Answer a ticket',
    access: 'own',
    params: z.strictObject({ ticket: z.string() }),
    headers: z.object({ authorization: z.string().optional() }),
    body: z.strictObject({ answer: z.string({ error: 'expected a text' }) }),
    success: { status: 200, description: 'The ticket.', schema: ticket },
    problems: ['unauthenticated', 'not_found'],
  },
} as const satisfies OperationTable

/** A call, as the operation of this id types it. */
type CallOf<Id extends keyof typeof ticketOperations> = Omit<ModuleCall, 'params' | 'body'> & {
  readonly params: Record<string, string>
  readonly body: (typeof ticketOperations)[Id] extends { readonly body: infer Body extends z.ZodType }
    ? z.output<Body>
    : undefined
}

export const ANSWER_TOKEN = 'the-token-of-the-module'

/** A module that keeps tickets in memory, each in the tenant and project of its creator. */
export function createTicketModule(overrides: Partial<ServedModule> = {}): ServedModule {
  const tickets = new Map<string, { ticket: Ticket; owner: string }>()
  const ownerOf = ({ caller }: Pick<ModuleCall, 'caller'>): string =>
    JSON.stringify([caller?.tenantId, caller?.projectId])
  const find = (call: Pick<ModuleCall, 'caller'>, id: string | undefined): Ticket => {
    const found = tickets.get(id ?? '')
    if (found === undefined || (call.caller !== null && found.owner !== ownerOf(call))) {
      throw new RequestRefusal('not_found', 'expected the id of a ticket, got another')
    }
    return found.ticket
  }
  return {
    name: 'ticket',
    operations: ticketOperations,
    handlers: {
      createTicket: async (call) => {
        const { params, body } = call as CallOf<'createTicket'>
        const made: Ticket = { id: randomUUID(), queue: params['queue'] ?? '', title: body.title, answer: null }
        tickets.set(made.id, { ticket: made, owner: ownerOf(call) })
        return { body: made, headers: { location: `/v1/queues/${encodeURIComponent(made.queue)}/tickets/${made.id}` } }
      },
      getTicket: async (call) => ({ body: find(call, (call as CallOf<'getTicket'>).params['ticket']) }),
      deleteTicket: async (call) => {
        tickets.delete(find(call, (call as CallOf<'deleteTicket'>).params['ticket']).id)
        return { body: undefined }
      },
      listProjectTickets: async (call) => ({
        body: {
          items: [...tickets.values()].filter(({ owner }) => owner === ownerOf(call)).map((each) => each.ticket),
        },
      }),
      answerTicket: async (call) => {
        const { params, headers, body } = call as CallOf<'answerTicket'>
        if ((headers as { authorization?: string }).authorization !== `Bearer ${ANSWER_TOKEN}`) {
          throw new RequestRefusal('unauthenticated', 'expected the token of the module, got another', {
            headers: { 'www-authenticate': 'Bearer' },
          })
        }
        const found = find(call, params['ticket'])
        found.answer = body.answer
        return { body: found }
      },
    },
    rawRoutes: [
      {
        method: 'POST',
        path: '/bots/{bot}/webhook',
        handle: async (request, { bot }) =>
          Response.json(
            { bot, text: await request.text(), secret: request.headers.get('x-secret') },
            { status: 202, headers: { 'x-ticket': 'seen' } },
          ),
      },
    ],
    ...overrides,
  }
}

/** The same as a manifest, for servers that load it by `CARILLON_MODULES`. */
export const module: ModuleManifest = {
  port: MODULE_PORT,
  name: 'ticket',
  version: '1.0.0',
  operations: ticketOperations,
  load: async () => ({
    create: () => {
      const { handlers, rawRoutes } = createTicketModule()
      return { handlers, rawRoutes }
    },
  }),
}
