import { createOperationClient, RefusedError } from '@carillon/api'
import { afterAll, describe, expect, test } from 'vitest'

import { injectFetch } from './inject-fetch.ts'
import { ADMIN_KEY, createTestApp, type TestApp } from './test-app.ts'
import { ANSWER_TOKEN, createTicketModule, ticketOperations } from './ticket-module.ts'

const world = await createTestApp({ modules: [createTicketModule()] })
afterAll(() => world[Symbol.asyncDispose]())

function clientWith(key: string | null, { app }: Pick<TestApp, 'app'> = world) {
  return createOperationClient(ticketOperations, 'http://carillon.test', key, { fetch: injectFetch(app) })
}

const admin = clientWith(ADMIN_KEY)
const keyOf = async (role: 'admin' | 'member', project = 'default', tenant = 'default'): Promise<string> =>
  (await world.admin.keys.create({ tenant, project, subject: 'user:alice', role })).key

describe('operations of a module', () => {
  test('are served from the root, with several parameters and several methods on one path', async () => {
    const made = await admin.createTicket({ params: { queue: 'north' }, body: { title: 'A question' } })
    const found = await admin.getTicket({ params: { queue: 'north', ticket: made.id } })
    const deleted = await admin.deleteTicket({ params: { queue: 'north', ticket: made.id } })
    const gone = await world.request('GET', `/v1/queues/north/tickets/${made.id}`)

    expect(made).toEqual({ id: made.id, queue: 'north', title: 'A question', answer: null })
    expect(found).toEqual(made)
    expect(deleted).toBeUndefined()
    expect(gone.json()).toMatchObject({ status: 404, code: 'not_found' })
  })

  test('get parameters that a client encodes, and none of a longer path', async () => {
    const made = await admin.createTicket({ params: { queue: 'a/b ?' }, body: { title: 'A question' } })
    const below = await world.request('GET', `/v1/queues/north/tickets/${made.id}/more`)

    expect(made.queue).toBe('a/b ?')
    expect(below.json()).toMatchObject({ code: 'route_not_found' })
  })

  test('need the key and the role that the operation states', async () => {
    const request = { body: { title: 'A question' } }
    const member = await keyOf('member')

    const anonymous = await world.request('POST', '/v1/queues/north/tickets', { ...request, key: null })
    const reader = await world.request('POST', '/v1/queues/north/tickets', { ...request, key: member })

    expect(anonymous.json()).toMatchObject({ code: 'unauthenticated' })
    expect(reader.json()).toMatchObject({ code: 'forbidden' })
  })

  test('parse their input by their schemas, and answer with every field at fault', async () => {
    const answer = await world.request('POST', '/v1/queues/north/tickets?more=1', { body: { titel: 'A question' } })

    expect(answer.json()).toMatchObject({ code: 'invalid_input' })
    expect(answer.json<{ errors: { field: string }[] }>().errors.map(({ field }) => field)).toEqual([
      'query.more',
      'title',
      'titel',
    ])
  })

  test('pass the tenant, the project and the subject of the caller to the handler, and no key', async () => {
    const seen: unknown[] = []
    const handlers = {
      ...createTicketModule().handlers,
      getTicket: async (call: unknown) => void seen.push(call) as never,
    }
    await using other = await createTestApp({ modules: [createTicketModule({ handlers })] })

    await other.request('GET', '/v1/queues/north/tickets/t1')

    expect(seen).toEqual([
      {
        caller: { tenantId: 'default', projectId: 'default', subject: 'service:installation' },
        params: { queue: 'north', ticket: 't1' },
        query: undefined,
        headers: undefined,
        body: undefined,
      },
    ])
  })

  test('with a project in the path answer 404 for every project but the one of the caller', async () => {
    const key = await keyOf('member', 'blue')

    const own = await world.request('GET', '/api/projects/blue/tickets', { key })
    const other = await world.request('GET', '/api/projects/default/tickets', { key })

    expect(own.json()).toEqual({ items: [] })
    expect(other.statusCode).toBe(404)
  })

  test('write refusals in their own format and media type, of every kind', async () => {
    const refusals = [
      await world.request('GET', '/api/projects/other/tickets'),
      await world.request('GET', '/api/projects/default/tickets', { key: null }),
      await world.request('GET', '/api/projects/default/tickets?answered=perhaps'),
    ]

    expect(refusals.map(({ statusCode }) => statusCode)).toEqual([404, 401, 400])
    expect(refusals.map((answer) => answer.json<{ error: { code: string } }>().error.code)).toEqual([
      'PROJECT_NOT_FOUND',
      'UNAUTHENTICATED',
      'INVALID_INPUT',
    ])
    expect(refusals[0]?.headers['content-type']).toBe('application/json; charset=utf-8')
  })

  test('whose refusals have a format of their own throw a RefusedError in the client', async () => {
    const refused = await clientWith('wrong')
      .listProjectTickets({ params: { project: 'default' } })
      .catch((error: unknown) => error)

    expect(refused).toBeInstanceOf(RefusedError)
    expect(refused).toMatchObject({ status: 401, body: { error: { code: 'UNAUTHENTICATED' } } })
  })

  test('that fail answer an error of the server without its text, and log it', async () => {
    const handlers = {
      ...createTicketModule().handlers,
      getTicket: () => Promise.reject(new Error('the secret of the module')),
    }
    await using other = await createTestApp({ modules: [createTicketModule({ handlers })] })

    const answer = await other.request('GET', '/v1/queues/north/tickets/t1')

    expect(answer.statusCode).toBe(500)
    expect(answer.body).not.toContain('the secret')
    expect(JSON.stringify(other.log)).toContain('the secret of the module')
  })
})

test('a refusal with a code that is no problem is an error of the server', async () => {
  const refusal = Object.assign(new Error('nonsense'), {
    name: 'RequestRefusal',
    code: 'nonsense',
    headers: {},
    errors: [],
  })
  const handlers = { ...createTicketModule().handlers, getTicket: () => Promise.reject(refusal) }
  await using other = await createTestApp({ modules: [createTicketModule({ handlers })] })

  const answer = await other.request('GET', '/v1/queues/north/tickets/t1')

  expect(answer.json()).toMatchObject({ status: 500, code: 'internal' })
})

test('a refusal of another copy of core is a refusal like any other', async () => {
  const refusal = Object.assign(new Error('gone'), {
    name: 'RequestRefusal',
    code: 'not_found',
    headers: {},
    errors: [],
  })
  const handlers = { ...createTicketModule().handlers, getTicket: () => Promise.reject(refusal) }
  await using other = await createTestApp({ modules: [createTicketModule({ handlers })] })

  const answer = await other.request('GET', '/v1/queues/north/tickets/t1')

  expect(answer.json()).toMatchObject({ status: 404, code: 'not_found', detail: 'gone' })
})

describe('an operation that proves its caller itself', () => {
  test('gets the token, and needs no API key', async () => {
    const { id } = await admin.createTicket({ params: { queue: 'north' }, body: { title: 'A question' } })

    const answered = await clientWith(ANSWER_TOKEN).answerTicket({ params: { ticket: id }, body: { answer: 'Yes' } })
    const refused = await world.request('POST', `/api/v1/tickets/${id}/answer`, { body: { answer: 'No' } })

    expect(answered).toMatchObject({ id, answer: 'Yes' })
    expect(refused.json()).toMatchObject({ code: 'unauthenticated' })
    expect(refused.headers['www-authenticate']).toBe('Bearer')
  })

  test('gets no caller, even if the request has a valid API key', async () => {
    const seen: unknown[] = []
    const handlers = {
      ...createTicketModule().handlers,
      answerTicket: async ({ caller }: { caller: unknown }) => {
        seen.push(caller)
        return { body: {} }
      },
    }
    await using other = await createTestApp({ modules: [createTicketModule({ handlers })] })

    await other.request('POST', '/api/v1/tickets/t1/answer', { body: { answer: 'Yes' } })

    expect(seen).toEqual([null])
    expect(other.log.at(-1)).toMatchObject({ route: '/api/v1/tickets/:ticket/answer', status: 200 })
    expect(other.log.at(-1)).not.toHaveProperty('keyId')
  })

  test('is limited per address, apart from requests without a key', async () => {
    await using small = await createTestApp({ modules: [createTicketModule()], requestsPerMinute: 2 })
    const anonymousBefore = await small.request('GET', '/openapi.json', { key: null })
    const ask = () => small.request('POST', '/api/v1/tickets/t1/answer', { key: null, body: { answer: 'Yes' } })

    const statuses = [(await ask()).statusCode, (await ask()).statusCode, (await ask()).statusCode]
    const other = await small.request('GET', '/openapi.json', { key: null })

    expect(statuses).toEqual([401, 401, 429])
    expect(other.statusCode).toBe(200)
    const remaining = (answer: typeof other): number => Number(answer.headers['ratelimit-remaining'])
    expect(remaining(anonymousBefore) - remaining(other)).toBe(1)
  })
})

describe('the OpenAPI document', () => {
  test('shows the operations of modules with their schemas, access and errors', async () => {
    const answer = await world.request('GET', '/openapi.json')
    const { paths, tags, components } = answer.json<{
      paths: Record<string, Record<string, Record<string, object>>>
      tags: { name: string }[]
      components: { schemas: Record<string, object> }
    }>()

    expect(Object.keys(paths['/v1/queues/{queue}/tickets/{ticket}'] ?? {})).toEqual(['get', 'delete'])
    expect(components.schemas).toHaveProperty('Ticket')
    expect(tags.map(({ name }) => name)).toContain('ticket')
    expect(paths['/api/v1/tickets/{ticket}/answer']?.['post']).toMatchObject({
      security: [{ token: [] }],
      requestBody: { content: { 'application/json': { schema: { type: 'object', required: ['answer'] } } } },
    })
    expect(Object.keys(paths['/api/v1/tickets/{ticket}/answer']?.['post']?.['responses'] ?? {})).not.toContain('403')
    expect(paths['/api/projects/{project}/tickets']?.['get']?.['responses']).toMatchObject({
      404: { content: { 'application/json': { schema: { properties: { error: {} } } } } },
    })
  })

  test('shows nothing of a module that is not served', async () => {
    await using other = await createTestApp()

    const answer = await other.request('GET', '/openapi.json')

    expect(answer.body).not.toContain('Ticket')
  })
})
