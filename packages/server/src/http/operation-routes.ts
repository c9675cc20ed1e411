import { API_PREFIX, INSTALLATION_KEY, operationIds, operations, type Operation, type OperationId } from '@carillon/api'
import type { FastifyInstance, FastifyReply, FastifyRequest, RouteOptions } from 'fastify'

import type { AppDeps } from './app-deps.ts'
import type { Authenticate } from './authentication.ts'
import { credentialsOf } from './credentials.ts'
import type { Answer, Call, Handler, HandlersOf, Service } from './handler.ts'
import type { Identity } from './identity.ts'
import { ignoreBodies } from './json-body.ts'
import { unavailableProblem } from './problems/carillon-problems.ts'
import { ProblemError } from './problems/problem-error.ts'
import { readInput } from './request-input.ts'
import { isSameOrigin } from './same-origin.ts'

interface OperationRoutes extends Pick<AppDeps, 'authorization'> {
  readonly service: Service
  readonly authenticate: Authenticate
  readonly handlers: HandlersOf<OperationId>
}

/** Makes a route of every operation. */
export async function registerOperations(app: FastifyInstance, routes: OperationRoutes): Promise<void> {
  const add = (scope: FastifyInstance, hasBody: boolean): void => {
    for (const id of operationIds) {
      const operation: Operation = operations[id]
      if ((operation.body !== undefined) === hasBody) scope.route(routeOf(id, operation, routes))
    }
  }
  await app.register(
    async (scope) => {
      scope.addHook('onSend', async (_request, reply) => void reply.header('cache-control', 'no-store'))
      add(scope, true)
      await scope.register(async (bodyless) => {
        ignoreBodies(bodyless)
        add(bodyless, false)
      })
    },
    { prefix: API_PREFIX },
  )
}

function routeOf(
  id: OperationId,
  operation: Operation,
  { service, authenticate, authorization, handlers }: OperationRoutes,
): RouteOptions {
  const { method, path, success } = operation
  const isBasicAllowed = isCalendar(operation)
  const identify = async (request: FastifyRequest): Promise<Identity | undefined> => {
    const credentials = credentialsOf(request, { isBasicAllowed })
    return credentials && authenticate(credentials)
  }
  const isAllowed = async ({ isInstallation, caller }: Identity): Promise<boolean> =>
    isInstallation || authorization.isAllowed({ ...caller, role: operation.role })
  // The keys of the table are the ids, and what was read for an id is what its schemas say.
  const handle = handlers[id] as unknown as Handler<'getSchedule'>
  return {
    method: method.toUpperCase(),
    url: path.replace('{id}', ':id'),
    // Nobody could tell the end of a stream without a body.
    exposeHeadRoute: method === 'get' && success.mediaType !== 'text/event-stream',
    onRequest: async (request) => {
      request.identity = await identify(request)
    },
    // Before the body is read: who may not ask is not listened to.
    preParsing: async (request) => {
      const identity = requireRole(request, operation)
      if (!(await told(() => isAllowed(identity)))) throw notAllowed(operation)
    },
    handler: async (request, reply) => {
      const identity = requireIdentity(request, operation)
      const isStillAllowed = async (): Promise<boolean> => {
        const again = await identify(request)
        return again !== undefined && (await isAllowed(again))
      }
      const call = { service, identity, caller: identity.caller, isStillAllowed, ...readInput(operation, request) }
      // As above: what `readInput` gave is what the schemas of this very operation read.
      return send(reply, operation, await handle(call as unknown as Call<'getSchedule'>))
    },
  }
}

function requireIdentity({ identity }: FastifyRequest, operation: Operation): Identity {
  if (identity !== undefined) return identity
  const detail = 'expected a valid API key: send it as "Authorization: Bearer <key>"'
  // A calendar program asks its user for a password only if it is told to.
  const challenge = isCalendar(operation) ? 'Bearer, Basic realm="Carillon"' : 'Bearer'
  throw new ProblemError('unauthenticated', detail, { headers: { 'www-authenticate': challenge } })
}

function isCalendar({ success }: Operation): boolean {
  return success.mediaType === 'text/calendar'
}

/** By what the key, the token or the session says. */
function requireRole(request: FastifyRequest, operation: Operation): Identity {
  const { method, role, isForInstallation = false } = operation
  const identity = requireIdentity(request, operation)
  const isBySession = request.headers.authorization === undefined
  if (isBySession && method !== 'get' && !isSameOrigin(request.headers)) {
    throw new ProblemError(
      'forbidden',
      'expected a request of a page of this service, got one of another: use an API key',
    )
  }
  if (isForInstallation && !identity.isInstallation) {
    const detail = `expected ${INSTALLATION_KEY}, got another: use it, or ask whoever runs this service`
    throw new ProblemError('forbidden', detail)
  }
  if (role === 'admin' && identity.role !== 'admin') {
    throw new ProblemError('forbidden', 'expected a key with the role admin, got a member: a member may only read')
  }
  return identity
}

/** Fails closed: nobody is let in because nobody could be asked. */
async function told(ask: () => Promise<boolean>): Promise<boolean> {
  try {
    return await ask()
  } catch (error) {
    throw unavailableProblem(error)
  }
}

function notAllowed({ role }: Operation): ProblemError {
  const expected =
    role === 'admin' ? 'expected somebody who may write in this project' : 'expected a member of this project'
  return new ProblemError('forbidden', `${expected}, got one who may not: have an admin of the project put you back`)
}

function send(reply: FastifyReply, { success }: Operation, { body, headers = {} }: Answer<OperationId>): FastifyReply {
  if (success.mediaType !== undefined) reply.type(success.mediaType)
  return reply.code(success.status).headers(headers).send(body)
}
