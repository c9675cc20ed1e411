import type { z } from 'zod'

import { readEventStream } from './event-stream.ts'
import type { Operation } from './operation.ts'
import { operations, type OperationId } from './operations.ts'
import { liveEvents, type LiveEvent } from './schemas/event.ts'
import type { EditPlan, Schedule, ScheduleEdit, ScheduleInput } from './schemas/schedule.ts'
import { transcriptEvents, type TranscriptEvent } from './schemas/transcript.ts'
import { Transport, type ClientOptions, type OperationRequest } from './transport.ts'

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
  runs: { get: 'getRun', cancel: 'cancelRun', transcript: 'getTranscript' },
  callbacks: { complete: 'completeRun', heartbeat: 'heartbeatRun' },
  cadence: { preview: 'previewCadence' },
  targetKinds: { list: 'listTargetKinds' },
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

export type Client = ReturnType<typeof createClient>

/**
 * A client of the API, typed by the schemas of its operations. Throws ApiError if the server refuses a request, and
 * UnreachableError if nothing answers, or something other than Carillon.
 */
export function createClient(url: string, key: string, options: ClientOptions = {}) {
  const transport = new Transport(url, key, options)
  const ask = async <Id extends OperationId>(id: Id, request: OperationRequest): Promise<AnswerOf<Id>> =>
    (await transport.ask(operations[id], request)) as AnswerOf<Id>

  const groupOf = <Group extends keyof typeof METHODS>(group: Group): MethodsOf<Group> => {
    const entries = Object.entries<OperationId>(METHODS[group])
    // The cast restores the names, which Object.fromEntries loses. `MethodsOf` and `requestOf` read the same fields of the operation.
    return Object.fromEntries(
      entries.map(([name, id]) => [name, (...given: unknown[]) => ask(id, requestOf(operations[id], given))]),
    ) as MethodsOf<Group>
  }

  const editOf = (id: string, body: ScheduleEdit, matching: Matching, query: OperationRequest['query'] = {}) =>
    ask('editSchedule', { params: { id }, body, query, headers: { 'if-match': '*', ...headersOf(matching) } })

  async function* follow<Event extends LiveEvent | TranscriptEvent>(
    operationId: OperationId,
    request: OperationRequest,
    { lastEventId, onPosition }: FollowOptions,
    schemas: { readonly [Name in Event['event']]: unknown },
  ): AsyncGenerator<Event, void, undefined> {
    const headers = lastEventId === undefined ? {} : { 'last-event-id': lastEventId }
    const { body } = await transport.send(operations[operationId], { ...request, headers })
    if (body === null) return
    try {
      yield* readEventStream<Event>(body, onPosition, schemas)
    } catch (error) {
      throw transport.unlessAborted(error, `the connection to ${url} broke: ask again after the last event`)
    }
  }

  return {
    runs: {
      ...groupOf('runs'),
      /**
       * What a run records, from its first line or after a line, until the run is over: the last event is `end`. Ends without it when the
       * server closes the connection, and throws UnreachableError when the connection breaks; then call it again with the last position.
       */
      followTranscript: (id: string, following: FollowOptions = {}) =>
        follow<TranscriptEvent>('followTranscript', { params: { id } }, following, transcriptEvents),
    },
    cadence: groupOf('cadence'),
    targetKinds: groupOf('targetKinds'),
    grants: groupOf('grants'),
    secrets: groupOf('secrets'),
    members: groupOf('members'),
    keys: groupOf('keys'),
    tenants: groupOf('tenants'),
    projects: groupOf('projects'),
    callbacks: groupOf('callbacks'),
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
        ask('pauseSchedule', { params: { id }, body: { reason }, headers: headersOf(matching) }),
      skip: (id: string, scheduledFor: string) => ask('skipSlot', { params: { id }, body: { scheduledFor } }),
      restore: (id: string, scheduledFor: string) => ask('restoreSlot', { params: { id }, body: { scheduledFor } }),
      /** The upcoming slots of the project as iCalendar. */
      calendar: async (): Promise<string> => (await transport.send(operations.getCalendar, {})).text(),
    },
    /**
     * The events of the project, from now on or after an event. Ends when the server closes the connection, and throws
     * UnreachableError when the connection breaks. In both cases, call it again with the last position as `lastEventId`.
     */
    events: (following: FollowOptions = {}) => follow<LiveEvent>('followEvents', {}, following, liveEvents),
  }
}

/** Builds the request from the arguments of a method, which come in the order of `ArgumentsOf`. */
function requestOf({ params, body, query, headers }: Operation, given: readonly unknown[]): OperationRequest {
  const rest = [...given]
  return {
    ...(params === undefined ? {} : { params: { id: rest.shift() as string } }),
    ...(body === undefined ? {} : { body: rest.shift() }),
    ...(query === undefined ? {} : { query: rest.shift() as OperationRequest['query'] }),
    ...(headers === undefined ? {} : { headers: headersOf(rest.shift() ?? {}) }),
  }
}

function headersOf({ revision, idempotencyKey }: Matching & Repeatable): Record<string, string> {
  return {
    ...(revision === undefined ? {} : { 'if-match': `"${revision}"` }),
    ...(idempotencyKey === undefined ? {} : { 'idempotency-key': idempotencyKey }),
  }
}
