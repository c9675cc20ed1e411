import type { z } from 'zod'

import { reference, referredSchemas, toJsonSchema, type JsonObject } from './openapi-schemas.ts'
import { headerName, pathOf, problemsOf, TAGS, type Operation, type OperationTable } from './operation.ts'
import { operations } from './operations.ts'
import { PROBLEM_TYPES, problem, RETRY_AFTER_PROBLEMS } from './problem.ts'
import { ADMIN_KEY_PHRASE } from './words.ts'

const PROBLEMS = { schema: problem, mediaType: 'application/problem+json' }
const TOKEN_HEADER = 'authorization'

interface DocumentOptions {
  readonly version: string
  readonly url: string
  /** Operations of modules, besides Carillon's own. @default none */
  readonly others?: OperationTable
}

/** The OpenAPI 3.1 document of the API, generated from the operations. */
export function createOpenApi({ version, url, others = {} }: DocumentOptions): JsonObject {
  const table: OperationTable = { ...operations, ...others }
  const paths: Record<string, JsonObject> = {}
  for (const [id, operation] of Object.entries(table)) {
    const path = pathOf(operation)
    paths[path] = { ...paths[path], [operation.method]: describeOperation(id, operation) }
  }
  return {
    openapi: '3.1.0',
    info: {
      title: 'Carillon',
      version,
      summary: 'One durable clock for everything that must happen later.',
      description: 'Every slot that comes due leaves exactly one line in the ledger: that it ran, or why it did not.',
      license: { name: 'Apache-2.0', identifier: 'Apache-2.0' },
    },
    servers: [{ url }],
    security: [{ key: [] }],
    tags: tagsOf(table),
    paths,
    components: {
      schemas: referredSchemas(paths),
      securitySchemes: {
        key: { type: 'http', scheme: 'bearer', description: 'An API key, or a token of the identity provider.' },
        calendarKey: { type: 'http', scheme: 'basic', description: 'An API key as the password, under any name.' },
        ...(Object.values(table).some(takesToken)
          ? { token: { type: 'http', scheme: 'bearer', description: 'A token that the operation itself checks.' } }
          : {}),
      },
    },
  }
}

function tagsOf(table: OperationTable): JsonObject[] {
  const known: Readonly<Record<string, string>> = TAGS
  const names = new Set([...Object.keys(TAGS), ...Object.values(table).map(({ tag }) => tag)])
  return [...names].map((name) => ({ name, description: known[name] ?? `Operations of the module ${name}.` }))
}

/** True if the handler itself reads a token from the header Authorization. */
function takesToken({ headers }: Operation): boolean {
  return headers !== undefined && TOKEN_HEADER in headers.shape
}

function audienceText({ access, role, needsAdminKey }: Operation): string {
  if (access === 'own') return 'Needs no API key: the operation itself checks the caller.'
  if (needsAdminKey === true) return `Only with ${ADMIN_KEY_PHRASE}.`
  return role === 'admin' ? 'For admins.' : 'For members.'
}

function describeOperation(operationId: string, operation: Operation): JsonObject {
  const { summary, description, tag, body, success } = operation
  const security = securityOf(operation)
  return {
    operationId,
    tags: [tag],
    summary,
    description: [description, audienceText(operation)].filter(Boolean).join(' '),
    ...(security === undefined ? {} : { security }),
    parameters: [
      ...parametersIn('path', operation.params),
      ...parametersIn('query', operation.query),
      ...parametersIn('header', operation.headers),
    ],
    ...(body === undefined
      ? {}
      : { requestBody: { required: true, content: { 'application/json': { schema: reference(body) } } } }),
    responses: { [success.status]: describeSuccess(success), ...describeProblems(operation) },
  }
}

/** Undefined for the security of the whole document: an API key. */
function securityOf(operation: Operation): JsonObject[] | undefined {
  if (operation.access === 'own') return takesToken(operation) ? [{ token: [] }] : []
  return operation.success.mediaType === 'text/calendar' ? [{ key: [] }, { calendarKey: [] }] : undefined
}

function describeSuccess({ description, schema, mediaType, headers = {} }: Operation['success']): JsonObject {
  const content =
    schema === undefined && mediaType === undefined
      ? undefined
      : { [mediaType ?? 'application/json']: { schema: schema === undefined ? { type: 'string' } : reference(schema) } }
  return {
    description,
    ...(Object.keys(headers).length === 0 ? {} : { headers: stringHeaders(headers) }),
    ...(content === undefined ? {} : { content }),
  }
}

/** Documents one answer per HTTP status. Its description names the problem codes with that status. */
function describeProblems(operation: Operation): JsonObject {
  const { schema, mediaType } = { mediaType: 'application/json', ...(operation.errors ?? PROBLEMS) }
  const byStatus = Map.groupBy(problemsOf(operation), (code) => PROBLEM_TYPES[code].status)
  const answers = [...byStatus].toSorted(([a], [b]) => a - b)
  return Object.fromEntries(
    answers.map(([status, sameStatus]) => [
      status,
      {
        description: sameStatus.map((code) => `\`${code}\`: ${PROBLEM_TYPES[code].title}.`).join(' '),
        ...(sameStatus.some((code) => RETRY_AFTER_PROBLEMS.includes(code))
          ? { headers: stringHeaders({ 'Retry-After': 'Seconds to wait before the next try, where waiting helps.' }) }
          : {}),
        content: { [mediaType]: { schema: reference(schema) } },
      },
    ]),
  )
}

function stringHeaders(headers: Readonly<Record<string, string>>): JsonObject {
  return Object.fromEntries(
    Object.entries(headers).map(([name, description]) => [name, { description, schema: { type: 'string' } }]),
  )
}

function parametersIn(place: 'path' | 'query' | 'header', schema: z.ZodObject | undefined): JsonObject[] {
  if (schema === undefined) return []
  const { properties = {}, required = [] } = toJsonSchema(schema) as {
    properties?: Record<string, JsonObject>
    required?: string[]
  }
  // A document says in `security` what the header Authorization holds.
  const named = Object.entries(properties).filter(([name]) => place !== 'header' || name !== TOKEN_HEADER)
  return named.map(([name, { description, ...property }]) => ({
    name: place === 'header' ? headerName(name) : name,
    in: place,
    required: place === 'path' || required.includes(name),
    ...(description === undefined ? {} : { description }),
    schema: property,
  }))
}
