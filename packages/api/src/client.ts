import type { z } from 'zod'

import { ApiError, UnreachableError } from './api-error.ts'
import { readEventStream } from './event-stream.ts'
import { API_PREFIX } from './openapi.ts'
import type { Operation } from './operation.ts'
import { operations, type OperationId } from './operations.ts'
import { problem } from './problem.ts'
import type { FeedEvent } from './schemas/feed.ts'
import type { GrantInput, GrantRenewal } from './schemas/grant.ts'
import type { KeyInput } from './schemas/key.ts'
import type { MemberInput } from './schemas/member.ts'
import type { PurgeRequest } from './schemas/purge.ts'
import type { EditPlan, Schedule, ScheduleEdit, ScheduleInput } from './schemas/schedule.ts'
import type { SecretInput } from './schemas/secret.ts'
import type { TenantInput } from './schemas/tenant.ts'

export interface ClientOptions {
  /** @default the fetch of the runtime */
  readonly fetch?: typeof fetch
  /** Ends whatever is under way. */
  readonly signal?: AbortSignal
}

/** Names the revision that a change is meant for; without it, whichever there is. */
interface Matching {
  readonly revision?: number
}

/** Sent again with the same key, it is answered the same. */
interface Repeatable {
  readonly idempotencyKey?: string
}

type QueryOf<Id extends OperationId> = (typeof operations)[Id] extends { query: infer Query extends z.ZodType }
  ? z.infer<Query>
  : never

type AnswerOf<Id extends OperationId> = (typeof operations)[Id]['success'] extends {
  schema: infer Schema extends z.ZodType
}
  ? z.infer<Schema>
  : undefined

interface FollowOptions {
  /** Go on after this event. */
  readonly lastEventId?: string | undefined
  /** Told from where to go on, before each event and also while nothing happens. */
  readonly onPosition?: (lastEventId: string) => void
}

interface Request {
  readonly id?: string
  readonly query?: Readonly<Record<string, string | number | undefined>>
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: unknown
}

export type Client = ReturnType<typeof createClient>

/**
 * Asks a service, typed by the same schemas that it answers by. Throws ApiError for what it refuses, and UnreachableError if
 * nobody answers.
 */
export function createClient(url: string, key: string, options: ClientOptions = {}) {
  const send = async (id: OperationId, request: Request): Promise<Response> => {
    const response = await fetchFrom(url, key, id, request, options)
    if (response.ok) return response
    throw await refusal(url, response)
  }

  const ask = async <Id extends OperationId>(id: Id, request: Request = {}): Promise<AnswerOf<Id>> => {
    const response = await send(id, request)
    return (response.status === 204 ? undefined : await readJson(url, response)) as AnswerOf<Id>
  }

  return {
    schedules: {
      create: (body: ScheduleInput, repeatable: Repeatable = {}) =>
        ask('createSchedule', { body, headers: keyHeader(repeatable) }),
      /** All of them or none, at most `BATCH_MAX`. */
      createMany: (schedules: readonly ScheduleInput[], repeatable: Repeatable = {}) =>
        ask('createSchedules', { body: { schedules }, headers: keyHeader(repeatable) }),
      /** What `create` would make; makes nothing. */
      preview: (body: ScheduleInput) => ask('previewSchedule', { body }),
      previewMany: (schedules: readonly ScheduleInput[]) => ask('previewSchedules', { body: { schedules } }),
      list: (query: QueryOf<'listSchedules'> = {}) => ask('listSchedules', { query }),
      get: (id: string) => ask('getSchedule', { id }),
      edit: (id: string, body: ScheduleEdit, matching: Matching = {}) =>
        ask('editSchedule', { id, body, headers: ifMatch(matching, '*') }) as Promise<Schedule>,
      planEdit: (id: string, body: ScheduleEdit, matching: Matching = {}) =>
        ask('editSchedule', {
          id,
          body,
          query: { dryRun: 'true' },
          headers: ifMatch(matching, '*'),
        }) as Promise<EditPlan>,
      delete: (id: string, matching: Matching = {}) => ask('deleteSchedule', { id, headers: ifMatch(matching) }),
      pause: (id: string, { reason, ...matching }: Matching & { readonly reason: string }) =>
        ask('pauseSchedule', { id, body: { reason }, headers: ifMatch(matching) }),
      resume: (id: string, matching: Matching = {}) => ask('resumeSchedule', { id, headers: ifMatch(matching) }),
      run: (id: string) => ask('runSchedule', { id }),
      skip: (id: string, scheduledFor: string) => ask('skipSlot', { id, body: { scheduledFor } }),
      restore: (id: string, scheduledFor: string) => ask('restoreSlot', { id, body: { scheduledFor } }),
      runs: (id: string, query: QueryOf<'listRuns'> = {}) => ask('listRuns', { id, query }),
      slots: (id: string, query: QueryOf<'listSlots'> = {}) => ask('listSlots', { id, query }),
      history: (id: string) => ask('getHistory', { id }),
      /** As iCalendar. */
      calendar: async (): Promise<string> => (await send('getCalendar', {})).text(),
    },
    runs: {
      get: (id: string) => ask('getRun', { id }),
      cancel: (id: string) => ask('cancelRun', { id }),
    },
    cadence: {
      preview: (body: z.input<(typeof operations)['previewCadence']['body']>) => ask('previewCadence', { body }),
    },
    grants: {
      create: (body: GrantInput) => ask('createGrant', { body }),
      list: (query: QueryOf<'listGrants'> = {}) => ask('listGrants', { query }),
      get: (id: string) => ask('getGrant', { id }),
      renew: (id: string, body: GrantRenewal) => ask('renewGrant', { id, body }),
      revoke: (id: string) => ask('revokeGrant', { id }),
    },
    secrets: {
      list: (query: QueryOf<'listSecrets'> = {}) => ask('listSecrets', { query }),
      put: (name: string, body: SecretInput) => ask('putSecret', { id: name, body }),
      delete: (name: string) => ask('deleteSecret', { id: name }),
    },
    members: {
      list: (query: QueryOf<'listMembers'> = {}) => ask('listMembers', { query }),
      put: (subject: string, body: MemberInput) => ask('putMember', { id: subject, body }),
      remove: (subject: string) => ask('removeMember', { id: subject }),
    },
    keys: {
      create: (body: KeyInput) => ask('createKey', { body }),
      list: (query: QueryOf<'listKeys'> = {}) => ask('listKeys', { query }),
      revoke: (id: string, query: QueryOf<'revokeKey'> = {}) => ask('revokeKey', { id, query }),
    },
    tenants: {
      get: (id: string) => ask('getTenant', { id }),
      /** In the place of all that was said before. */
      put: (id: string, body: TenantInput) => ask('putTenant', { id, body }),
    },
    projects: {
      deleteSchedules: (id: string) => ask('deleteProjectSchedules', { id }),
      previewPurge: (id: string) => ask('previewPurge', { id }),
      /** For good. `name` is that of the project, once more. */
      purge: (id: string, body: PurgeRequest) => ask('purgeProject', { id, body }),
    },
    audit: { get: () => ask('getAudit'), request: () => ask('requestAudit') },
    /**
     * What happens from now on, or after an event. Ends when the service closes the connection, and throws UnreachableError
     * when it breaks: either way, ask again after the last id that `onPosition` was told of.
     */
    async *events({ lastEventId, onPosition }: FollowOptions = {}): AsyncGenerator<FeedEvent, void, undefined> {
      const headers = lastEventId === undefined ? {} : { 'last-event-id': lastEventId }
      const { body } = await send('followEvents', { headers })
      if (body === null) return
      try {
        yield* readEventStream(body, onPosition)
      } catch (error) {
        throw unlessAborted(error, options, `the connection to ${url} broke: ask again after the last event`)
      }
    },
  }
}

function keyHeader({ idempotencyKey }: Repeatable): Record<string, string> {
  return idempotencyKey === undefined ? {} : { 'idempotency-key': idempotencyKey }
}

function ifMatch({ revision }: Matching, otherwise?: string): Record<string, string> {
  const value = revision === undefined ? otherwise : `"${revision}"`
  return value === undefined ? {} : { 'if-match': value }
}

async function fetchFrom(
  url: string,
  key: string,
  operationId: OperationId,
  request: Request,
  options: ClientOptions,
): Promise<Response> {
  const { body } = request
  const { method }: Operation = operations[operationId]
  const [target, headers] = [targetOf(url, operationId, request), headersOf(key, request)]
  const init: RequestInit = {
    method: method.toUpperCase(),
    headers,
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    ...(options.signal === undefined ? {} : { signal: options.signal }),
  }
  try {
    return await (options.fetch ?? fetch)(target, init)
  } catch (error) {
    throw unlessAborted(error, options, `nobody answers at ${url}: is the service running there?`)
  }
}

/** Below whatever path the URL has, for a service behind a proxy. */
function targetOf(url: string, operationId: OperationId, { id = '', query = {} }: Request): URL {
  const { path }: Operation = operations[operationId]
  const text = url.replace(/\/+$/, '') + API_PREFIX + path.replace('{id}', () => encodeURIComponent(id))
  const target = URL.parse(text)
  if (target === null) throw new TypeError(`expected a URL such as http://127.0.0.1:7400, got ${JSON.stringify(url)}`)
  for (const [name, value] of Object.entries(query)) {
    if (value !== undefined) target.searchParams.set(name, String(value))
  }
  return target
}

function headersOf(key: string, { headers = {}, body }: Request): Headers {
  // What fetch would say of a wrong one quotes it.
  if (!/^[\x21-\x7e]+$/.test(key)) throw new TypeError('expected an API key of visible ASCII characters, got another')
  return new Headers({
    authorization: `Bearer ${key}`,
    ...headers,
    ...(body === undefined ? {} : { 'content-type': 'application/json' }),
  })
}

/** Who ended it knows why; to anybody else it happened. */
function unlessAborted(error: unknown, { signal }: ClientOptions, message: string): unknown {
  return signal?.aborted === true ? error : new UnreachableError(message, { cause: error })
}

async function refusal(url: string, response: Response): Promise<Error> {
  const parsed = problem.safeParse(await readJson(url, response))
  if (!parsed.success) return notOurs(url, response)
  const retryAfter = Number(response.headers.get('retry-after') ?? Number.NaN)
  return new ApiError(parsed.data, Number.isFinite(retryAfter) ? retryAfter : null)
}

async function readJson(url: string, response: Response): Promise<unknown> {
  try {
    return await response.json()
  } catch (error) {
    throw notOurs(url, response, { cause: error })
  }
}

function notOurs(url: string, { status }: Response, options?: ErrorOptions): UnreachableError {
  return new UnreachableError(`what answers at ${url} is not Carillon (status ${status}): check the URL`, options)
}
