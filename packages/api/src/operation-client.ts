import type { z } from 'zod'

import type { Operation, OperationTable } from './operation.ts'
import { Transport, type ClientOptions, type OperationRequest } from './transport.ts'

/** The part of a request that an operation reads; absent if it reads none. A part without required fields may be left out. */
type PartOf<Shape, Part extends string> = Shape extends { readonly [P in Part]: infer Schema extends z.ZodType }
  ? object extends z.input<Schema>
    ? { readonly [P in Part]?: z.input<Schema> }
    : { readonly [P in Part]: z.input<Schema> }
  : object

type RequestOf<Shape extends Operation> = PartOf<Shape, 'params'> &
  PartOf<Shape, 'query'> &
  PartOf<Shape, 'headers'> &
  PartOf<Shape, 'body'>

type AnswerOf<Shape extends Operation> = Shape['success'] extends { readonly schema: infer Schema extends z.ZodType }
  ? z.infer<Schema>
  : undefined

/** One method for each operation that answers with JSON, or with nothing. */
export type OperationClient<Table extends OperationTable> = {
  readonly [Id in keyof Table as Table[Id]['success'] extends { readonly mediaType: string } ? never : Id]: (
    ...given: object extends RequestOf<Table[Id]> ? [request?: RequestOf<Table[Id]>] : [request: RequestOf<Table[Id]>]
  ) => Promise<AnswerOf<Table[Id]>>
}

/**
 * A client of the operations that a module brings, typed by their schemas. Throws what the client of Carillon throws, and RefusedError
 * for an operation that writes its refusals in a format of its own.
 * @param key null for operations that check their callers themselves
 */
export function createOperationClient<const Table extends OperationTable>(
  table: Table,
  url: string,
  key: string | null,
  options: ClientOptions = {},
): OperationClient<Table> {
  const transport = new Transport(url, key, options)
  const methods = Object.entries(table).map(([id, operation]) => [
    id,
    (request: OperationRequest = {}) => transport.ask(operation, request),
  ])
  // The cast restores the names and types, which Object.fromEntries loses.
  return Object.fromEntries(methods) as OperationClient<Table>
}
