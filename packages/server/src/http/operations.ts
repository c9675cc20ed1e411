import type { Readable } from 'node:stream'

import { ADMIN_KEY_PHRASE, API_PREFIX, operationIds, operations, type Operation, type OperationId } from '@carillon/api'
import type {
  AuthorizationPort,
  Caller,
  Clock,
  Grants,
  Keys,
  Members,
  Projects,
  Scheduler,
  Secrets,
  Tenants,
} from '@carillon/core'
import type { FastifyInstance, FastifyReply, FastifyRequest, RouteOptions } from 'fastify'
import type { Logger } from 'pino'
import type { z } from 'zod'

import { credentialsOf, type Authenticate } from '../auth/authenticate.ts'
import type { Identity } from '../auth/identity.ts'
import type { EventHub } from '../events/hub.ts'
import { ignoreBodies, readInput } from './input.ts'
import type { KeyConcurrency } from './limits.ts'
import { ProblemError, unavailableProblem } from './problems.ts'
import { isSameOrigin } from './sign-in.ts'

/** What the handlers of operations work with. */
export interface Service {
  readonly scheduler: Scheduler
  readonly keys: Keys
  readonly grants: Grants
  readonly members: Members
  readonly secrets: Secrets
  readonly tenants: Tenants
  readonly projects: Projects
  readonly clock: Clock
  readonly logger: Logger
  readonly eventHub: EventHub
  /** Limits how many calendars a key may request at a time: only this answer needs many reads of the database. */
  readonly calendarLimit: KeyConcurrency
}

type OperationOf<Id extends OperationId> = (typeof operations)[Id]

/** What the schema of one part of the request parses to; undefined if the operation reads nothing there. */
type Read<Id extends OperationId, RequestPart extends 'params' | 'query' | 'headers' | 'body'> =
  OperationOf<Id> extends { readonly [P in RequestPart]: infer Schema extends z.ZodType } ? z.output<Schema> : undefined

/** A request that was authenticated, allowed and parsed. */
interface Call<Id extends OperationId> {
  readonly service: Service
  readonly identity: Identity
  readonly caller: Caller
  readonly params: Read<Id, 'params'>
  readonly query: Read<Id, 'query'>
  readonly headers: Read<Id, 'headers'>
  readonly body: Read<Id, 'body'>
  /** Checks the credentials and the permission of the request again. */
  readonly isStillAllowed: () => Promise<boolean>
}

type Body<Success> = Success extends { readonly mediaType: 'text/event-stream' }
  ? Readable
  : Success extends { readonly mediaType: string }
    ? string
    : Success extends { readonly schema: infer Schema extends z.ZodType }
      ? z.output<Schema>
      : undefined

/** The answer of a handler. Its status is in the operations table. */
interface Answer<Id extends OperationId> {
  readonly body: Body<OperationOf<Id>['success']>
  readonly headers?: Readonly<Record<string, string>>
}

type Handler<Id extends OperationId> = (call: Call<Id>) => Promise<Answer<Id>>

/** One handler for each of the named operations. */
export type HandlersOf<Id extends OperationId> = { readonly [Each in Id]: Handler<Each> }

interface OperationRoutes {
  readonly service: Service
  readonly authenticate: Authenticate
  /** Checks the permission of every request, except those of the installation. */
  readonly authorization: AuthorizationPort
  readonly handlers: HandlersOf<OperationId>
}

/** Registers a route for every operation of the API. */
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

/** The steps of a request: authenticate, limit its rate, check permission, parse the input, call the handler, answer. */
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
  // TypeScript cannot relate `id` to its entry in the table, so every handler is cast to that of one operation, `getSchedule`.
  const handle = handlers[id] as unknown as Handler<'getSchedule'>
  return {
    method: method.toUpperCase(),
    url: path.replace('{id}', ':id'),
    // HEAD of an event stream would never end.
    exposeHeadRoute: method === 'get' && success.mediaType !== 'text/event-stream',
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
      const call = { service, identity, caller: identity.caller, isStillAllowed, ...readInput(operation, request) }
      // Cast like the handler: `readInput` has parsed the request by the schemas of the handler's operation.
      return send(reply, operation, await handle(call as unknown as Call<'getSchedule'>))
    },
  }
}

function requireIdentity({ identity }: FastifyRequest, operation: Operation): Identity {
  if (identity !== undefined) return identity
  const detail = 'expected a valid API key: send it as "Authorization: Bearer <key>"'
  // A calendar program asks its user for a password only after a Basic challenge.
  const challenge = isCalendar(operation) ? 'Bearer, Basic realm="Carillon"' : 'Bearer'
  throw new ProblemError('unauthenticated', detail, { headers: { 'www-authenticate': challenge } })
}

function isCalendar({ success }: Operation): boolean {
  return success.mediaType === 'text/calendar'
}

/** Checks the role in the key, the token or the session. `preParsing` then checks whether the subject may act in the project. */
function requireRole(request: FastifyRequest, operation: Operation): Identity {
  const { method, role, needsAdminKey = false } = operation
  const identity = requireIdentity(request, operation)
  const isBySession = request.headers.authorization === undefined
  if (isBySession && method !== 'get' && !isSameOrigin(request.headers)) {
    const detail = 'expected a request from a page of this server, got another: use an API key'
    throw new ProblemError('forbidden', detail)
  }
  if (needsAdminKey && !identity.isInstallation) {
    const detail = `expected ${ADMIN_KEY_PHRASE}, got another key: use it, or ask the operator of this server`
    throw new ProblemError('admin_key_required', detail)
  }
  if (role === 'admin' && identity.role !== 'admin') {
    throw new ProblemError('forbidden', 'expected a key with the role admin, got a member: a member may only read')
  }
  return identity
}

/** Turns a permission check that throws into the problem `unavailable`, so that it never lets a request through. */
async function failClosed(check: () => Promise<boolean>): Promise<boolean> {
  try {
    return await check()
  } catch (error) {
    throw unavailableProblem(error)
  }
}

function notAllowed({ role }: Operation): ProblemError {
  const expected = role === 'admin' ? 'a subject that may write in this project' : 'a member of this project'
  return new ProblemError('forbidden', `expected ${expected}, got another: ask an admin of the project to add you`)
}

function send(reply: FastifyReply, { success }: Operation, { body, headers = {} }: Answer<OperationId>): FastifyReply {
  if (success.mediaType !== undefined) reply.type(success.mediaType)
  return reply.code(success.status).headers(headers).send(body)
}
