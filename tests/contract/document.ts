import { createOpenApi, operations, type OperationTable } from '@carillon/api'
import { ticketOperations } from '@carillon/server/testing/ticket-module'
import formats from 'ajv-formats'
import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js'

interface DocumentedResponse {
  readonly description: string
  readonly headers?: Readonly<Record<string, unknown>>
  readonly content?: Readonly<Record<string, { readonly schema: unknown }>>
}

export interface DocumentedOperation {
  readonly operationId: string
  readonly method: string
  readonly path: string
  readonly parameters: readonly { readonly name: string; readonly in: string; readonly required: boolean }[]
  readonly requestBody?: unknown
  readonly responses: Readonly<Record<string, DocumentedResponse>>
}

/** The operations that the servers of these tests show: Carillon's own, and those of a module. */
export const served = { ...operations, ...ticketOperations } as const satisfies OperationTable

export type ServedId = keyof typeof served

/** The OpenAPI document as every client gets it: JSON without Carillon's schema objects. */
const document = JSON.parse(
  JSON.stringify(createOpenApi({ version: '0.1.0', url: 'http://127.0.0.1:7400', others: ticketOperations })),
) as {
  readonly paths: Readonly<Record<string, Readonly<Record<string, DocumentedOperation>>>>
}

export const documentedOperations: readonly DocumentedOperation[] = Object.entries(document.paths).flatMap(
  ([path, methods]) => Object.entries(methods).map(([method, operation]) => ({ ...operation, method, path })),
)

const ajv = new Ajv2020({ strict: false, allErrors: true })
// `ajv-formats` is CommonJS: its function is the `default` of its default export.
formats.default(ajv)
ajv.addSchema(document, 'openapi')

const validators = new Map<string, ValidateFunction>()

/** The differences of a body from the document. Empty if there are none. */
export function faultsOf(operation: DocumentedOperation, status: number, mediaType: string, body: unknown): string[] {
  const pointer = [
    'paths',
    operation.path,
    operation.method,
    'responses',
    String(status),
    'content',
    mediaType,
    'schema',
  ]
    .map((part) => part.replaceAll('~', '~0').replaceAll('/', '~1'))
    .join('/')
  const validate = validators.get(pointer) ?? ajv.compile({ $ref: `openapi#/${encodeURI(pointer)}` })
  validators.set(pointer, validate)
  if (validate(body)) return []
  return (validate.errors ?? []).map(({ instancePath, message }) => `${instancePath} ${message ?? ''}`)
}
