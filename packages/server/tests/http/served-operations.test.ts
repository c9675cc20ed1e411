import type { Operation } from '@carillon/api'
import { describe, expect, test } from 'vitest'
import { z } from 'zod'

import { serveTogether, type ServedModule } from '../../src/http/served-operations.ts'

const own = { operations: {}, handlers: {} }

function operation(changes: Partial<Operation> = {}): Operation {
  return {
    method: 'get',
    prefix: '',
    path: '/tickets',
    tag: 'ticket',
    summary: 'List tickets',
    role: 'member',
    success: { status: 200, description: 'The tickets.' },
    problems: [],
    ...changes,
  } as Operation
}

function moduleOf(name: string, operations: Record<string, Operation>, more: Partial<ServedModule> = {}): ServedModule {
  const handlers = Object.fromEntries(Object.keys(operations).map((id) => [id, async () => ({ body: undefined })]))
  return { name, operations, handlers, rawRoutes: [], ...more }
}

const idShape = (name: string) => z.strictObject({ [name]: z.string() })
const raw = (method: 'GET' | 'POST', path: string) => ({ method, path, handle: async () => new Response('') })

describe('the start is refused', () => {
  test.each<[string, readonly ServedModule[], string]>([
    [
      'if two modules have an operation of one id',
      [moduleOf('ticket', { list: operation() }), moduleOf('help', { list: operation({ path: '/other' }) })],
      'expected ids of operations to be distinct, got the operation list of the module ticket, and the operation list of the module help: rename one',
    ],
    [
      'if two operations have one method and path, whatever their parameters are called',
      [
        moduleOf('ticket', { get: operation({ path: '/t/{id}', params: idShape('id') }) }),
        moduleOf('help', { find: operation({ path: '/t/{key}', params: idShape('key') }) }),
      ],
      'expected methods and paths to be distinct, got get of the module ticket, which is GET /t/{id}, and find of the module help, which is GET /t/{key}: rename one',
    ],
    [
      'if a raw route has the method and path of an operation',
      [moduleOf('ticket', { list: operation() }, { rawRoutes: [raw('GET', '/tickets')] })],
      'got list of the module ticket, which is GET /tickets, and a raw route of the module ticket, which is GET /tickets: rename one',
    ],
    [
      'if a module takes a page of the server',
      [moduleOf('ticket', {}, { rawRoutes: [raw('GET', '/metrics')] })],
      'got a page of Carillon at /metrics, and a raw route of the module ticket, which is GET /metrics',
    ],
    [
      'if an operation has no handler',
      [moduleOf('ticket', { list: operation() }, { handlers: {} })],
      'the module ticket: expected a handler for the operation list, got none',
    ],
    [
      'if a handler has no operation',
      [moduleOf('ticket', {}, { handlers: { list: async () => ({ body: null }) } })],
      'the module ticket: expected an operation for the handler list, got none',
    ],
    [
      'if a parameter of the path is not described',
      [moduleOf('ticket', { get: operation({ path: '/t/{id}' }) })],
      'the module ticket: expected `params` of get to be those of its path (id), got none',
    ],
    [
      'if the project parameter is not in the path',
      [moduleOf('ticket', { list: operation({ projectParam: 'project' }) })],
      'the module ticket: expected `projectParam` of list to be in its path, got project',
    ],
  ])('%s, and the message names them', (_what, modules, message) => {
    expect(() => serveTogether(own, modules)).toThrow(message)
  })
})

test('operations that differ in their method or in a fixed part of their path are served together', () => {
  const modules = [
    moduleOf('ticket', { list: operation(), create: operation({ method: 'post' }) }),
    moduleOf('help', { other: operation({ path: '/tickets/all' }) }, { rawRoutes: [raw('POST', '/hook')] }),
  ]

  const served = serveTogether(own, modules)

  expect(served.map(({ id, owner }) => `${id} of ${owner}`)).toEqual([
    'list of the module ticket',
    'create of the module ticket',
    'other of the module help',
  ])
})
