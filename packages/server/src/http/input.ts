import {
  fieldProblems,
  foundName,
  foundText,
  headerName,
  JSON_DEPTH_MAX,
  type FieldProblem,
  type Operation,
} from '@carillon/api'
import type { FastifyInstance, FastifyRequest } from 'fastify'
import type { z } from 'zod'

import { invalidInput, ProblemError } from './problems.ts'

interface RequestInput {
  readonly params: unknown
  readonly query: unknown
  readonly headers: unknown
  readonly body: unknown
}

type NameOf = (path: readonly string[]) => string

const IN_PATH: NameOf = (path) => ['path', ...path].join('.')
const IN_QUERY: NameOf = (path) => ['query', ...path].join('.')
const IN_HEADERS: NameOf = ([name = '']) => headerName(name)
const IN_BODY: NameOf = (path) => path.join('.')

/** Parses everything that an operation reads of a request. @throws ProblemError with every field at fault */
export function readInput(operation: Operation, request: FastifyRequest): RequestInput {
  if (operation.body !== undefined && request.body === undefined) {
    throw new ProblemError('malformed_json', 'expected a JSON body, got nothing: send one, with its Content-Type')
  }
  const problems: FieldProblem[] = []
  const read = (schema: z.ZodType | undefined, value: unknown, nameOf: NameOf): unknown => {
    const parsed = schema?.safeParse(value)
    if (parsed?.error !== undefined) problems.push(...fieldProblems(parsed.error, nameOf))
    return parsed?.data
  }
  const query = request.query as Readonly<Record<string, unknown>>
  problems.push(...queryProblems(operation, query))
  const input = {
    params: read(operation.params, request.params, IN_PATH),
    query: problems.length > 0 ? undefined : read(operation.query, { ...query }, IN_QUERY),
    headers: read(operation.headers, request.headers, IN_HEADERS),
    body: read(operation.body, request.body, IN_BODY),
  }
  if (problems.length > 0) throw invalidInput(problems)
  return input
}

/** Refuses unknown and repeated query parameters instead of ignoring them, because the caller meant something by them. */
function queryProblems({ query: schema }: Operation, query: Readonly<Record<string, unknown>>): FieldProblem[] {
  const known = Object.keys(schema?.shape ?? {})
  const expected = known.length === 0 ? 'no parameters' : `one of ${known.join(', ')}`
  return Object.entries(query).flatMap(([name, value]) => {
    const field = `query.${foundName(name)}`
    if (!known.includes(name)) {
      return [{ field, message: `expected ${expected}, got "${foundName(name)}": leave it out, or correct its name` }]
    }
    if (!Array.isArray(value)) return []
    return [{ field, message: `expected the parameter once, got it ${value.length} times: send it only once` }]
  })
}

/** Reads bodies as JSON, and refuses every other type. */
export function readJsonBodies(app: FastifyInstance): void {
  app.removeAllContentTypeParsers()
  app.addContentTypeParser<Buffer>(
    'application/json',
    { parseAs: 'buffer' },
    async ({ headers }: FastifyRequest, body: Buffer) => {
      requireIdentityEncoding(headers['content-encoding'])
      return readJson(body)
    },
  )
}

/** For routes that take no body. A body that a client sends anyway is not read, whatever its type, and Node discards it. */
export function ignoreBodies(app: FastifyInstance): void {
  app.removeAllContentTypeParsers()
  app.addContentTypeParser('*', async () => undefined)
}

/** Refuses compressed bodies: a small one could decompress to one without end. */
function requireIdentityEncoding(encoding = ''): void {
  if (/^(?:identity)?$/i.test(encoding)) return
  const message = `expected identity, or no such header, got ${foundText(encoding)}: send the body as it is`
  throw new ProblemError('unsupported_media_type', `Content-Encoding: ${message}`, {
    errors: [{ field: 'Content-Encoding', message }],
    headers: { 'accept-encoding': 'identity' },
  })
}

function readJson(bytes: Buffer): unknown {
  if (bytes.length === 0) throw malformed('nothing')
  const body = parseJson(decodeText(bytes))
  const fault = bodyFault(body)
  if (fault !== undefined) throw invalidInput([fault])
  return body
}

/** Refuses invalid UTF-8, which would otherwise be stored as replacement characters. */
function decodeText(bytes: Buffer): string {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes)
  } catch (error) {
    throw malformed('bytes that are no UTF-8', error)
  }
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch (error) {
    throw malformed('something else', error)
  }
}

function malformed(found: string, cause?: unknown): ProblemError {
  return new ProblemError('malformed_json', `expected a JSON body, got ${found}: check it with a JSON parser`, {
    cause,
  })
}

interface Node {
  readonly value: object
  readonly path: readonly string[]
}

/**
 * Finds what no body may contain: a field `__proto__`, which pollutes prototypes where objects are copied, and too many levels of
 * nesting. The walk does not recurse, so that a deep body cannot overflow the stack.
 *
 * Fastify's own parser, which `readJsonBodies` replaces, refuses `__proto__` by the library secure-json-parse. It answers that the JSON
 * is invalid, without the field at fault, which callers are promised, and it does not limit the depth. The depth needs this walk anyway.
 */
function bodyFault(body: unknown): FieldProblem | undefined {
  const nodes: Node[] = isNode(body) ? [{ value: body, path: [] }] : []
  for (let node = nodes.pop(); node !== undefined; node = nodes.pop()) {
    const { value, path } = node
    if (path.length > JSON_DEPTH_MAX) {
      return {
        field: path[0] ?? '',
        message: `expected at most ${JSON_DEPTH_MAX} levels of lists and objects, got more`,
      }
    }
    for (const [key, child] of Object.entries(value)) {
      if (key === '__proto__') {
        const field = [...path, key].join('.')
        return { field, message: 'expected no such field, got "__proto__": give it another name' }
      }
      if (isNode(child)) nodes.push({ value: child, path: [...path, foundName(key)] })
    }
  }
  return undefined
}

function isNode(value: unknown): value is object {
  return typeof value === 'object' && value !== null
}
