import { pathOf, type Operation, type Role } from '@carillon/api'
import type { AuthorizationPort } from '@carillon/core'
import type { FastifyInstance, FastifyReply, FastifyRequest, RouteOptions } from 'fastify'

import { credentialsOf, type Authenticate } from '../auth/authenticate.ts'
import type { Identity } from '../auth/identity.ts'
import { ignoreBodies, readInput } from './input.ts'
import {
  failClosed,
  isCalendar,
  notAllowed,
  requireIdentity,
  requireOwnProject,
  requireRole,
} from './operation-access.ts'
import type { AnyHandler, Service } from './operation-handlers.ts'
import type { ServedOperation } from './served-operations.ts'

declare module 'fastify' {
  interface FastifyContextConfig {
    /** The operation of the route; undefined for pages, probes and raw routes. */
    operation?: Operation
    /** `own`: the handler of the route proves its caller itself. */
    access?: 'own'
  }
}

interface OperationRoutes {
  readonly service: Service
  readonly authenticate: Authenticate
  /** Checks the permission of every request, except those of the installation. */
  readonly authorization: AuthorizationPort
  /** Those of Carillon and those of its modules. */
  readonly served: readonly ServedOperation[]
}

/** Registers a route for every operation. */
export async function registerOperations(app: FastifyInstance, routes: OperationRoutes): Promise<void> {
  const add = (scope: FastifyInstance, hasBody: boolean): void => {
    for (const each of routes.served) {
      if ((each.operation.body !== undefined) === hasBody) scope.route(routeOf(each, routes))
    }
  }
  await app.register(async (scope) => {
    scope.addHook('onSend', async (_request, reply) => void reply.header('cache-control', 'no-store'))
    add(scope, true)
    await scope.register(async (bodyless) => {
      ignoreBodies(bodyless)
      add(bodyless, false)
    })
  })
}

/** The pattern of a path for the router: `/runs/{id}` becomes `/runs/:id`. */
export function routerPath(path: string): string {
  return path.replaceAll(':', '::').replaceAll(/\{(\w+)\}/g, ':$1')
}

function routeOf({ operation, handle }: ServedOperation, routes: OperationRoutes): RouteOptions {
  const { method, success } = operation
  const route = {
    method: method.toUpperCase(),
    url: routerPath(pathOf(operation)),
    // HEAD of an event stream would never end.
    exposeHeadRoute: method === 'get' && success.mediaType !== 'text/event-stream',
  }
  return operation.access === 'own'
    ? { ...route, ...openSteps(operation, handle, routes) }
    : { ...route, ...guardedSteps(operation, operation.role, handle, routes) }
}

type Steps = Pick<RouteOptions, 'config' | 'onRequest' | 'preParsing' | 'handler'>

/** The steps of a request whose caller the handler proves: limit its rate, parse the input, call the handler, answer. */
function openSteps(operation: Operation, handle: AnyHandler, { service }: OperationRoutes): Steps {
  return {
    config: { operation, access: 'own' },
    handler: async (request, reply) => {
      const known = { identity: null, caller: null, isStillAllowed: async () => true }
      return send(reply, operation, await handle({ service, ...known, ...readInput(operation, request) }))
    },
  }
}

/** The steps of any other request: authenticate, limit its rate, check permission, parse the input, call the handler, answer. */
function guardedSteps(
  operation: Operation,
  role: Role,
  handle: AnyHandler,
  { service, authenticate, authorization }: OperationRoutes,
): Steps {
  const isBasicAllowed = isCalendar(operation)
  const identify = async (request: FastifyRequest): Promise<Identity | undefined> => {
    const credentials = credentialsOf(request, { isBasicAllowed })
    return credentials && authenticate(credentials)
  }
  const isAllowed = async ({ isInstallation, caller }: Identity): Promise<boolean> =>
    isInstallation || authorization.isAllowed({ ...caller, role })
  return {
    config: { operation },
    onRequest: async (request) => {
      request.identity = await identify(request)
    },
    // This hook runs before the body is read, so that a refused caller cannot make the server read it.
    preParsing: async (request) => {
      const identity = requireRole(request, operation)
      if (!(await failClosed(() => isAllowed(identity)))) throw notAllowed(operation)
    },
    handler: async (request, reply) => {
      const identity = requireIdentity(request, operation)
      const isStillAllowed = async (): Promise<boolean> => {
        const again = await identify(request)
        return again !== undefined && (await isAllowed(again))
      }
      const input = readInput(operation, request)
      requireOwnProject(operation, identity, input.params)
      const { caller } = identity
      return send(reply, operation, await handle({ service, identity, caller, isStillAllowed, ...input }))
    },
  }
}

function send(
  reply: FastifyReply,
  { success }: Operation,
  { body, headers = {}, status = success.status }: Awaited<ReturnType<AnyHandler>>,
): FastifyReply {
  if (success.mediaType !== undefined) reply.type(success.mediaType)
  return reply.code(status).headers(headers).send(body)
}
