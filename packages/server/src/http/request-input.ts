import { fieldProblems, foundName, headerName, type FieldProblem, type Operation } from '@carillon/api'
import type { FastifyRequest } from 'fastify'
import type { z } from 'zod'

import { invalidInput, ProblemError } from './problems/problem-error.ts'

export interface RequestInput {
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

/** Everything that an operation reads of a request. @throws ProblemError with every field at fault */
export function readInput(operation: Operation, request: FastifyRequest): RequestInput {
  if (operation.body !== undefined && request.body === undefined) {
    throw new ProblemError('malformed_json', 'expected a body of JSON, got nothing: send one, with its Content-Type')
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

/** A parameter that nobody reads was meant to do something; one that is there twice, two things. */
function queryProblems({ query: schema }: Operation, query: Readonly<Record<string, unknown>>): FieldProblem[] {
  const known = Object.keys(schema?.shape ?? {})
  const expected = known.length === 0 ? 'no parameters' : `one of ${known.join(', ')}`
  return Object.entries(query).flatMap(([name, value]) => {
    const field = `query.${foundName(name)}`
    if (!known.includes(name)) {
      return [{ field, message: `expected ${expected}, got "${foundName(name)}": leave it out, or correct its name` }]
    }
    if (!Array.isArray(value)) return []
    return [{ field, message: `expected it once, got it ${value.length} times: leave out all but one` }]
  })
}
