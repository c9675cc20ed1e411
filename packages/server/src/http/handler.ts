import type { Readable } from 'node:stream'

import type { operations, OperationId } from '@carillon/api'
import type { Caller } from '@carillon/core'
import type { z } from 'zod'

import type { AppDeps } from './app-deps.ts'
import type { FeedHub } from './events/feed-hub.ts'
import type { Identity } from './identity.ts'
import type { KeyPlaces } from './key-places.ts'

/** What handlers work with. */
export interface Service extends Pick<
  AppDeps,
  'scheduler' | 'keys' | 'grants' | 'members' | 'secrets' | 'tenants' | 'projects' | 'clock' | 'logger'
> {
  readonly feedHub: FeedHub
  /** A calendar is the one answer that takes many reads. */
  readonly calendarPlaces: KeyPlaces
}

type OperationOf<Id extends OperationId> = (typeof operations)[Id]

/** What a place of the request says, once its schema has read it; undefined if the operation reads nothing there. */
type Read<Id extends OperationId, Place extends 'params' | 'query' | 'headers' | 'body'> =
  OperationOf<Id> extends { readonly [P in Place]: infer Schema extends z.ZodType } ? z.output<Schema> : undefined

/** A request that was read and allowed. */
export interface Call<Id extends OperationId> {
  readonly service: Service
  readonly identity: Identity
  readonly caller: Caller
  readonly params: Read<Id, 'params'>
  readonly query: Read<Id, 'query'>
  readonly headers: Read<Id, 'headers'>
  readonly body: Read<Id, 'body'>
  /** Asks again whether whoever called may still do so. */
  readonly isStillAllowed: () => Promise<boolean>
}

type Body<Success> = Success extends { readonly mediaType: 'text/event-stream' }
  ? Readable
  : Success extends { readonly mediaType: string }
    ? string
    : Success extends { readonly schema: infer Schema extends z.ZodType }
      ? z.output<Schema>
      : undefined

/** What is answered; its status is the operation's. */
export interface Answer<Id extends OperationId> {
  readonly body: Body<OperationOf<Id>['success']>
  readonly headers?: Readonly<Record<string, string>>
}

export type Handler<Id extends OperationId> = (call: Call<Id>) => Promise<Answer<Id>>

/** For some operations, all of them required. */
export type HandlersOf<Id extends OperationId> = { readonly [Each in Id]: Handler<Each> }
