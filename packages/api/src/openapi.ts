import { z } from 'zod'

import { components, documented } from './component.ts'
import { API_PREFIX, headerName, problemsOf, TAGS, type Operation } from './operation.ts'
import { operationIds, operations } from './operations.ts'
import { PROBLEM_TYPES, problem, RETRY_AFTER_PROBLEMS, type ProblemCode } from './problem.ts'
import { ADMIN_KEY_PHRASE } from './words.ts'

type JsonObject = Record<string, unknown>

/** The OpenAPI 3.1 document of the API, generated from the operations. */
export function createOpenApi({ version, url }: { readonly version: string; readonly url: string }): JsonObject {
  const paths: Record<string, JsonObject> = {}
  for (const id of operationIds) {
    const operation: Operation = operations[id]
    const path = `${API_PREFIX}${operation.path}`
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
    tags: Object.entries(TAGS).map(([name, description]) => ({ name, description })),
    paths,
    components: {
      schemas: componentSchemas(),
      securitySchemes: {
        key: { type: 'http', scheme: 'bearer', description: 'An API key, or a token of the identity provider.' },
        calendarKey: { type: 'http', scheme: 'basic', description: 'An API key as the password, under any name.' },
      },
    },
  }
}

function audienceText({ role, needsAdminKey }: Operation): string {
  if (needsAdminKey === true) return `Only with ${ADMIN_KEY_PHRASE}.`
  return role === 'admin' ? 'For admins.' : 'For members.'
}

function describeOperation(operationId: string, operation: Operation): JsonObject {
  const { summary, description, tag, body, success } = operation
  const isCalendar = success.mediaType === 'text/calendar'
  return {
    operationId,
    tags: [tag],
    summary,
    description: [description, audienceText(operation)].filter(Boolean).join(' '),
    ...(isCalendar ? { security: [{ key: [] }, { calendarKey: [] }] } : {}),
    parameters: [
      ...parametersIn('path', operation.params),
      ...parametersIn('query', operation.query),
      ...parametersIn('header', operation.headers),
    ],
    ...(body === undefined
      ? {}
      : { requestBody: { required: true, content: { 'application/json': { schema: reference(body) } } } }),
    responses: { [success.status]: describeSuccess(success), ...describeProblems(problemsOf(operation)) },
  }
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
function describeProblems(codes: readonly ProblemCode[]): JsonObject {
  const byStatus = Map.groupBy(codes, (code) => PROBLEM_TYPES[code].status)
  const answers = [...byStatus].toSorted(([a], [b]) => a - b)
  return Object.fromEntries(
    answers.map(([status, sameStatus]) => [
      status,
      {
        description: sameStatus.map((code) => `\`${code}\`: ${PROBLEM_TYPES[code].title}.`).join(' '),
        ...(sameStatus.some((code) => RETRY_AFTER_PROBLEMS.includes(code))
          ? { headers: stringHeaders({ 'Retry-After': 'Seconds to wait before the next try, where waiting helps.' }) }
          : {}),
        content: { 'application/problem+json': { schema: reference(problem) } },
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
  return Object.entries(properties).map(([name, { description, ...property }]) => ({
    name: place === 'header' ? headerName(name) : name,
    in: place,
    required: place === 'path' || required.includes(name),
    ...(description === undefined ? {} : { description }),
    schema: property,
  }))
}

/** Refers to a component by its URI, and to a union of components by `oneOf`. */
function reference(schema: z.core.$ZodType): JsonObject {
  const shown = documented(schema)
  const id = components.get(shown)?.id
  if (id !== undefined) return { $ref: componentUri(id) }
  if (shown instanceof z.ZodUnion) return { oneOf: shown.options.map((option) => reference(option)) }
  throw new Error('expected a component, or a union of components, got a schema without a name')
}

function componentUri(id: string): string {
  return `#/components/schemas/${id}`
}

function componentSchemas(): JsonObject {
  const { schemas } = z.toJSONSchema(components, {
    uri: componentUri,
    io: 'input',
    unrepresentable: 'any',
    override: ({ zodSchema, jsonSchema }) => {
      const shown = documented(zodSchema)
      const named = components.get(shown)
      if (shown !== zodSchema && named !== undefined) jsonSchema.$ref = componentUri(named.id)
      else if (named?.description !== undefined) jsonSchema.description ??= named.description
      simplify(jsonSchema)
    },
  })
  return Object.fromEntries(
    Object.entries(schemas)
      .toSorted(([a], [b]) => (a < b ? -1 : 1))
      .map(([id, { $schema: _dialect, $id: _uri, ...schema }]) => [id, schema]),
  )
}

function toJsonSchema(schema: z.ZodType): JsonObject {
  return z.toJSONSchema(schema, {
    io: 'input',
    unrepresentable: 'any',
    override: ({ jsonSchema }) => simplify(jsonSchema),
  })
}

/** Removes what tells a reader nothing: a pattern where there is a format, and the bounds of safe integers. */
function simplify(schema: JsonObject): void {
  if (schema['format'] !== undefined) delete schema['pattern']
  if (schema['minimum'] === Number.MIN_SAFE_INTEGER) delete schema['minimum']
  if (schema['maximum'] === Number.MAX_SAFE_INTEGER) delete schema['maximum']
}
