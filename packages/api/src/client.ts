import type { z } from 'zod'

import { readEventStream } from './event-stream.ts'
import { API_PREFIX, type Operation } from './operation.ts'
import { operations, type OperationId } from './operations.ts'
import { problem, type FieldProblem, type Problem, type ProblemCode } from './problem.ts'
import type { LiveEvent } from './schemas/event.ts'
import type { EditPlan, Schedule, ScheduleEdit, ScheduleInput } from './schemas/schedule.ts'

/** The server refused a request. */
export class ApiError extends Error {
  override readonly name = 'ApiError'
  readonly status: number
  readonly code: ProblemCode
  readonly errors: readonly FieldProblem[]
  /** Seconds after which another try may succeed; null if the server named none. */
  readonly retryAfterSeconds: number | null

  constructor(
    { code, status, detail, errors }: Pick<Problem, 'code' | 'status' | 'detail' | 'errors'>,
    retryAfterSeconds: number | null,
  ) {
    super(detail)
    this.status = status
    this.code = code
    this.errors = errors
    this.retryAfterSeconds = retryAfterSeconds
  }
}

/** Nothing answered, or what answered is not Carillon. */
export class UnreachableError extends Error {
  override readonly name = 'UnreachableError'
}

export interface ClientOptions {
  /** @default the fetch of the runtime */
  readonly fetch?: typeof fetch
  /** Aborts every request of the client. */
  readonly signal?: AbortSignal
}

/** The revision that a change is meant for: the server refuses the change of any other. @default any */
interface Matching {
  readonly revision?: number
}

/** A request that is sent twice with one key takes effect once. */
interface Repeatable {
  readonly idempotencyKey?: string
}

interface FollowOptions {
  /** Continue after this event. @default begin now */
  readonly lastEventId?: string | undefined
  /** Called with the position to continue from: before each event, and now and then while no event comes. */
  readonly onPosition?: (lastEventId: string) => void
}

/** The methods of the client that only send a request. Their arguments follow from the operation. */
const METHODS = {
  schedules: {
    create: 'createSchedule',
    preview: 'previewSchedule',
    list: 'listSchedules',
    get: 'getSchedule',
    delete: 'deleteSchedule',
    resume: 'resumeSchedule',
    run: 'runSchedule',
    runs: 'listRuns',
    slots: 'listSlots',
    history: 'getHistory',
  },
  runs: { get: 'getRun', cancel: 'cancelRun' },
  cadence: { preview: 'previewCadence' },
  grants: { create: 'createGrant', list: 'listGrants', get: 'getGrant', renew: 'renewGrant', revoke: 'revokeGrant' },
  secrets: { list: 'listSecrets', put: 'putSecret', delete: 'deleteSecret' },
  members: { list: 'listMembers', put: 'putMember', remove: 'removeMember' },
  keys: { create: 'createKey', list: 'listKeys', revoke: 'revokeKey' },
  tenants: { get: 'getTenant', put: 'putTenant' },
  projects: { deleteSchedules: 'deleteProjectSchedules', previewPurge: 'previewPurge', purge: 'purgeProject' },
  audit: { get: 'getAudit', request: 'requestAudit' },
} as const satisfies Readonly<Record<string, Readonly<Record<string, OperationId>>>>

type OperationOf<Id extends OperationId> = (typeof operations)[Id]

/** The arguments of a method, in this order: the id in the path, the body, the query, the headers. */
type ArgumentsOf<Id extends OperationId> = [
  ...(OperationOf<Id> extends { params: z.ZodType } ? [id: string] : []),
  ...(OperationOf<Id> extends { body: infer Body extends z.ZodType } ? [body: z.input<Body>] : []),
  ...(OperationOf<Id> extends { query: infer Query extends z.ZodType } ? [query?: z.infer<Query>] : []),
  ...(OperationOf<Id> extends { headers: infer Headers extends z.ZodType }
    ? [options?: OptionsOf<z.infer<Headers>>]
    : []),
]

type OptionsOf<Headers> = 'idempotency-key' extends keyof Headers ? Repeatable : Matching

type AnswerOf<Id extends OperationId> = OperationOf<Id>['success'] extends { schema: infer Schema extends z.ZodType }
  ? z.infer<Schema>
  : undefined

type MethodsOf<Group extends keyof typeof METHODS> = {
  readonly [Name in keyof (typeof METHODS)[Group]]: (typeof METHODS)[Group][Name] extends infer Id extends OperationId
    ? (...parameters: ArgumentsOf<Id>) => Promise<AnswerOf<Id>>
    : never
}

interface Request {
  readonly id?: string
  readonly query?: Readonly<Record<string, string | number | undefined>> | undefined
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: unknown
}

export type Client = ReturnType<typeof createClient>

/**
 * A client of the API, typed by the schemas of its operations. Throws ApiError if the server refuses a request, and
 * UnreachableError if nothing answers, or something other than Carillon.
 */
export function createClient(url: string, key: string, options: ClientOptions = {}) {
  const send = async (id: OperationId, request: Request): Promise<Response> => {
    const response = await fetchFrom(url, key, id, request, options)
    if (response.ok) return response
    throw await refusal(url, response)
  }

  const ask = async <Id extends OperationId>(id: Id, request: Request): Promise<AnswerOf<Id>> => {
    const response = await send(id, request)
    return (response.status === 204 ? undefined : await readJson(url, response)) as AnswerOf<Id>
  }

  const groupOf = <Group extends keyof typeof METHODS>(group: Group): MethodsOf<Group> => {
    const entries = Object.entries<OperationId>(METHODS[group])
    // The cast restores the names, which Object.fromEntries loses. `MethodsOf` and `requestOf` read the same fields of the operation.
    return Object.fromEntries(
      entries.map(([name, id]) => [name, (...given: unknown[]) => ask(id, requestOf(operations[id], given))]),
    ) as MethodsOf<Group>
  }

  const editOf = (id: string, body: ScheduleEdit, matching: Matching, query: Request['query'] = {}) =>
    ask('editSchedule', { id, body, query, headers: { 'if-match': '*', ...headersOf(matching) } })

  return {
    runs: groupOf('runs'),
    cadence: groupOf('cadence'),
    grants: groupOf('grants'),
    secrets: groupOf('secrets'),
    members: groupOf('members'),
    keys: groupOf('keys'),
    tenants: groupOf('tenants'),
    projects: groupOf('projects'),
    audit: groupOf('audit'),
    schedules: {
      ...groupOf('schedules'),
      /** Creates all of the schedules or none; at most `SCHEDULES_PER_REQUEST_MAX` in one call. */
      createMany: (schedules: readonly ScheduleInput[], repeatable: Repeatable = {}) =>
        ask('createSchedules', { body: { schedules }, headers: headersOf(repeatable) }),
      previewMany: (schedules: readonly ScheduleInput[]) => ask('previewSchedules', { body: { schedules } }),
      edit: (id: string, body: ScheduleEdit, matching: Matching = {}) =>
        editOf(id, body, matching) as Promise<Schedule>,
      /** Says what an edit would do to the slots ahead; changes nothing. */
      planEdit: (id: string, body: ScheduleEdit, matching: Matching = {}) =>
        editOf(id, body, matching, { dryRun: 'true' }) as Promise<EditPlan>,
      pause: (id: string, { reason, ...matching }: Matching & { readonly reason: string }) =>
        ask('pauseSchedule', { id, body: { reason }, headers: headersOf(matching) }),
      skip: (id: string, scheduledFor: string) => ask('skipSlot', { id, body: { scheduledFor } }),
      restore: (id: string, scheduledFor: string) => ask('restoreSlot', { id, body: { scheduledFor } }),
      /** The upcoming slots of the project as iCalendar. */
      calendar: async (): Promise<string> => (await send('getCalendar', {})).text(),
    },
    /**
     * The events of the project, from now on or after an event. Ends when the server closes the connection, and throws
     * UnreachableError when the connection breaks. In both cases, call it again with the last position as `lastEventId`.
     */
    async *events({ lastEventId, onPosition }: FollowOptions = {}): AsyncGenerator<LiveEvent, void, undefined> {
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

/** Builds the request from the arguments of a method, which come in the order of `ArgumentsOf`. */
function requestOf({ params, body, query, headers }: Operation, given: readonly unknown[]): Request {
  const rest = [...given]
  return {
    ...(params === undefined ? {} : { id: rest.shift() as string }),
    ...(body === undefined ? {} : { body: rest.shift() }),
    ...(query === undefined ? {} : { query: rest.shift() as Request['query'] }),
    ...(headers === undefined ? {} : { headers: headersOf(rest.shift() ?? {}) }),
  }
}

function headersOf({ revision, idempotencyKey }: Matching & Repeatable): Record<string, string> {
  return {
    ...(revision === undefined ? {} : { 'if-match': `"${revision}"` }),
    ...(idempotencyKey === undefined ? {} : { 'idempotency-key': idempotencyKey }),
  }
}

async function fetchFrom(
  url: string,
  key: string,
  operationId: OperationId,
  request: Request,
  options: ClientOptions,
): Promise<Response> {
  const { body } = request
  const operation = operations[operationId]
  const init: RequestInit = {
    method: operation.method.toUpperCase(),
    headers: allHeaders(key, request),
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    ...(options.signal === undefined ? {} : { signal: options.signal }),
  }
  const target = urlOf(url, operation.path, request)
  try {
    return await (options.fetch ?? fetch)(target, init)
  } catch (error) {
    throw unlessAborted(
      error,
      options,
      `expected an answer from a Carillon server at ${url}, got none: is it running there?`,
    )
  }
}

/** The URL of a request, below the path of `url`: a proxy may serve Carillon below a path. */
function urlOf(url: string, path: string, { id = '', query = {} }: Request): URL {
  const target = URL.parse(url.replace(/\/+$/, '') + API_PREFIX + path.replace('{id}', () => encodeURIComponent(id)))
  if (target === null) throw new TypeError(`expected a URL such as http://127.0.0.1:7400, got ${JSON.stringify(url)}`)
  for (const [name, value] of Object.entries(query)) {
    if (value !== undefined) target.searchParams.set(name, String(value))
  }
  return target
}

function allHeaders(key: string, { headers = {}, body }: Request): Headers {
  // Checked before fetch does, whose message about an invalid header would show the key.
  if (!/^[\x21-\x7e]+$/.test(key)) throw new TypeError('expected an API key of visible ASCII characters, got another')
  return new Headers({
    authorization: `Bearer ${key}`,
    ...headers,
    ...(body === undefined ? {} : { 'content-type': 'application/json' }),
  })
}

/** The error to throw. A caller that aborted the request gets its own reason back, not an UnreachableError. */
function unlessAborted(error: unknown, { signal }: ClientOptions, message: string): unknown {
  return signal?.aborted === true ? error : new UnreachableError(message, { cause: error })
}

async function refusal(url: string, response: Response): Promise<Error> {
  const parsed = problem.safeParse(await readJson(url, response))
  if (!parsed.success) return notCarillon(url, response)
  const retryAfter = Number(response.headers.get('retry-after') ?? Number.NaN)
  return new ApiError(parsed.data, Number.isFinite(retryAfter) ? retryAfter : null)
}

async function readJson(url: string, response: Response): Promise<unknown> {
  try {
    return await response.json()
  } catch (error) {
    throw notCarillon(url, response, { cause: error })
  }
}

function notCarillon(url: string, { status }: Response, options?: ErrorOptions): UnreachableError {
  return new UnreachableError(
    `expected an answer from a Carillon server at ${url}, got another one (status ${status}): check the URL`,
    options,
  )
}
