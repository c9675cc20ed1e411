import { describe, expect, test } from 'vitest'

import { createOpenApi, operationIds, operations, PROBLEM_TYPES, problemsOf, type Operation } from '../src/index.ts'

interface Documented {
  readonly operationId: string
  readonly description: string
  readonly parameters: readonly { readonly name: string; readonly in: string; readonly required: boolean }[]
  readonly requestBody?: { readonly content: object }
  readonly responses: Readonly<Record<string, { readonly description: string; readonly headers?: object }>>
}

// As JSON, which is how clients receive it.
const text = JSON.stringify(createOpenApi({ version: '0.1.0', url: '/' }))
const document = JSON.parse(text) as {
  readonly paths: Readonly<Record<string, Readonly<Record<string, Documented>>>>
  readonly components: { readonly schemas: Readonly<Record<string, { readonly description?: string }>> }
}

function documentedOf(operation: Operation): Documented {
  const found = document.paths[`/api/v1${operation.path}`]?.[operation.method]
  if (found === undefined) throw new Error(`${operation.method} ${operation.path} is not documented`)
  return found
}

describe('the OpenAPI document', () => {
  test('contains every component that it refers to', () => {
    const referred = [...text.matchAll(/#\/components\/schemas\/(\w+)/g)].map(([, id]) => id)

    expect(Object.keys(document.components.schemas)).toEqual(expect.arrayContaining(referred))
  })

  test('contains no internals of the schemas: no dialects, no ids, no patterns beside formats', () => {
    expect(text).not.toMatch(/"\$schema"|"\$id"|"~standard"/)
    expect(text).not.toMatch(/"format":"[^"]+","pattern"/)
  })

  test.each(operationIds)('describes %s with its parameters, its success and every problem', (id) => {
    const operation: Operation = operations[id]
    const documented = documentedOf(operation)
    const statuses = problemsOf(operation).map((code) => String(PROBLEM_TYPES[code].status))

    expect(documented.operationId).toBe(id)
    expect(documented.description.endsWith(audienceOf(operation))).toBe(true)
    expect(new Set(Object.keys(documented.responses))).toEqual(new Set([String(operation.success.status), ...statuses]))
    expect(documented.requestBody === undefined).toBe(operation.body === undefined)
    const required = documented.parameters.filter((parameter) => parameter.required).map(({ name }) => name)
    expect(required).toEqual(REQUIRED[id] ?? (operation.path.includes('{id}') ? ['id'] : []))
  })

  test('writes the names of headers in their usual case', () => {
    const headers = Object.values(operations).flatMap((operation: Operation) =>
      documentedOf(operation).parameters.filter((parameter) => parameter.in === 'header'),
    )

    expect(new Set(headers.map(({ name }) => name))).toEqual(new Set(['Idempotency-Key', 'If-Match', 'Last-Event-ID']))
  })

  test('states a Retry-After for the problems that a client may retry', () => {
    const { responses } = documentedOf(operations.createSchedule)

    const withRetryAfter = Object.entries(responses).filter(([, { headers = {} }]) => 'Retry-After' in headers)

    expect(withRetryAfter.map(([status]) => status)).toEqual(['409', '429', '503'])
  })
})

/** The parameters that an operation requires besides an id. */
const REQUIRED: Readonly<Record<string, readonly string[]>> = {
  completeRun: ['id', 'attempt'],
  heartbeatRun: ['id'],
}

function audienceOf({ access, role, needsAdminKey = false }: Operation): string {
  if (access === 'own') return 'Needs no API key: the operation itself checks the caller.'
  if (needsAdminKey) return 'Only with the admin key.'
  return role === 'admin' ? 'For admins.' : 'For members.'
}
