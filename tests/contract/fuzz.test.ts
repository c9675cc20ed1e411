import type { Operation, Problem } from '@carillon/api'
import fc from 'fast-check'
import { afterAll, expect, test } from 'vitest'

import { documentedOperations, faultsOf, served, type DocumentedOperation, type ServedId } from './document.ts'
import { mutated, text } from './mutations.ts'
import { GRANTED } from './requests.ts'
import type { WireRequest } from './wire-request.ts'
import { openWorld } from './world.ts'

/** `npm run test:fuzz` sends 2,000 bodies to each route, `npm test` fewer. */
const BODIES_PER_ROUTE = Number(process.env['FUZZ_BODIES'] ?? 400)
const PARAMETERS_PER_ROUTE = Math.ceil(BODIES_PER_ROUTE / 6)
const AT_ONCE = 20
// A fixed seed, so that a failing run can be repeated.
const SEED = 7400
const MINUTES = 60_000

const world = await openWorld({ requestsPerMinute: 1_000_000_000 })
afterAll(() => world.close())

const withBody = documentedOperations.filter(({ requestBody }) => requestBody !== undefined)

test.each(withBody)(
  `${BODIES_PER_ROUTE} bodies to $method $path succeed or are refused with a field and a reason, without a server error`,
  async (operation) => {
    const granted = await GRANTED[operation.operationId as ServedId](world)
    const bodies = fc.sample(mutated(granted.body), { numRuns: BODIES_PER_ROUTE, seed: SEED })

    const refused = await fuzz(
      operation,
      bodies.map((body) => ({ ...granted, body })),
    )

    // Some bodies are close enough to a valid one to be accepted. Most are refused.
    expect(refused).toBeGreaterThan(BODIES_PER_ROUTE / 2)
  },
  5 * MINUTES,
)

test.each(documentedOperations)(
  'no id, query or header causes a server error of $method $path',
  async (operation) => {
    const granted = await GRANTED[operation.operationId as ServedId](world)
    const { query = { shape: {} }, headers = { shape: {} } } = served[operation.operationId as ServedId] as {
      query?: { shape: object }
      headers?: { shape: object }
    }
    const some = (names: object): fc.Arbitrary<Record<string, string>> =>
      fc.dictionary(fc.constantFrom(...Object.keys(names), 'x-other'), text, { maxKeys: 4 })
    const requests = fc.sample(
      fc.record({ id: text, query: some(query.shape), headers: some(headers.shape) }, { requiredKeys: [] }),
      { numRuns: PARAMETERS_PER_ROUTE, seed: SEED },
    )

    await fuzz(
      operation,
      requests.map((request) => ({ ...granted, ...request, headers: sendable(request.headers ?? {}) })),
    )
  },
  5 * MINUTES,
)

/** Drops the headers that fetch itself refuses to send. */
function sendable(headers: Record<string, string>): Record<string, string> {
  const held = Object.entries(headers).filter(([, value]) => /^[\t\x20-\x7e\x80-\xff]*$/.test(value))
  return Object.fromEntries(held)
}

/** @returns how many requests were refused */
async function fuzz(operation: DocumentedOperation, requests: readonly WireRequest[]): Promise<number> {
  let refused = 0
  for (let from = 0; from < requests.length; from += AT_ONCE) {
    const batch = requests.slice(from, from + AT_ONCE)
    const statuses = await Promise.all(batch.map((request) => meet(operation, request)))
    refused += statuses.filter((status) => status >= 400).length
  }
  return refused
}

/** Sends one request. Its status must be documented, its problem complete, and a problem of the input must name field and reason. */
async function meet(operation: DocumentedOperation, request: WireRequest): Promise<number> {
  const response = await world.send(operation, request)
  const { status } = response
  if (response.ok) {
    await response.body?.cancel()
    return status
  }
  const answer = await response.text()
  const told = `${status} for ${JSON.stringify(request).slice(0, 2000)}: ${answer.slice(0, 1000)}`
  expect(status, told).toBeLessThan(500)
  // An id may be a text that leads to another route or to none, or that is too long.
  if (operation.responses[status] === undefined) expect([400, 404, 405, 431], told).toContain(status)
  const { errors }: Operation = served[operation.operationId as ServedId]
  if (errors !== undefined && operation.responses[status] !== undefined) {
    const { mediaType = 'application/json' } = errors
    expect(faultsOf(operation, status, mediaType, JSON.parse(answer)), told).toEqual([])
    return status
  }
  const problem = JSON.parse(answer) as Problem
  const [mediaType] = Object.keys(operation.responses[status]?.content ?? {})
  if (mediaType !== undefined) expect(faultsOf(operation, status, mediaType, problem), told).toEqual([])
  if (problem.code === 'invalid_input') {
    expect(problem.errors.length, told).toBeGreaterThan(0)
    for (const { field, message } of problem.errors) {
      // The field is empty only if the body as a whole is at fault, or a field whose name is empty.
      const isObject = typeof request.body === 'object' && request.body !== null && !Array.isArray(request.body)
      if (isObject && !Object.hasOwn(request.body, '')) expect(field, told).not.toBe('')
      expect(message, told).toMatch(/expected/i)
    }
  }
  return status
}
