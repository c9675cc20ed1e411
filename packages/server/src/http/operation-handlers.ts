import type { Readable } from 'node:stream'

import type { ModuleReasons, OperationId, operations } from '@carillon/api'
import type {
  Callbacks,
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
import type { Logger } from 'pino'
import type { z } from 'zod'

import type { Identity } from '../auth/identity.ts'
import type { EventHub } from '../events/hub.ts'
import type { TranscriptHub } from '../events/transcript-hub.ts'
import type { KeyConcurrency } from './limits.ts'

/** What the handlers of operations work with. */
export interface Service {
  readonly scheduler: Scheduler
  readonly callbacks: Callbacks
  readonly keys: Keys
  readonly grants: Grants
  readonly members: Members
  readonly secrets: Secrets
  readonly tenants: Tenants
  readonly projects: Projects
  /** The reasons of modules, each with its sentence. @default none */
  readonly reasons?: ModuleReasons | undefined
  readonly clock: Clock
  readonly logger: Logger
  readonly eventHub: EventHub
  readonly transcriptHub: TranscriptHub
  /** Limits how many calendars a key may request at a time: only this answer needs many reads of the database. */
  readonly calendarLimit: KeyConcurrency
}

type OperationOf<Id extends OperationId> = (typeof operations)[Id]

/** What the schema of one part of the request parses to; undefined if the operation reads nothing there. */
type Read<Id extends OperationId, RequestPart extends 'params' | 'query' | 'headers' | 'body'> =
  OperationOf<Id> extends { readonly [P in RequestPart]: infer Schema extends z.ZodType } ? z.output<Schema> : undefined

/** Null for an operation whose handler proves its caller itself. */
type Known<Id extends OperationId, Value> = OperationOf<Id> extends { readonly access: 'own' } ? null : Value

/** A request that was authenticated, allowed and parsed. */
interface Call<Id extends OperationId> {
  readonly service: Service
  readonly identity: Known<Id, Identity>
  readonly caller: Known<Id, Caller>
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

/** A call of any operation. */
interface AnyCall {
  readonly service: Service
  readonly identity: Identity | null
  readonly caller: Caller | null
  readonly params: unknown
  readonly query: unknown
  readonly headers: unknown
  readonly body: unknown
  readonly isStillAllowed: () => Promise<boolean>
}

export type AnyHandler = (call: AnyCall) => Promise<{
  readonly body: unknown
  readonly headers?: Readonly<Record<string, string>>
  /** @default the status of the operation */
  readonly status?: number
}>
