import {
  PROBLEM_TYPES,
  problemsOf,
  problemTypeUri,
  RETRY_AFTER_PROBLEMS,
  type Operation,
  type Problem,
  type ProblemCode,
} from '@carillon/api'
import { afterAll, describe, expect, test } from 'vitest'

import { documentedOperations, faultsOf, served as table, type DocumentedOperation, type ServedId } from './document.ts'
import { GRANTED, NO_SUCH_ID, REFUSED } from './requests.ts'
import type { WireRequest } from './wire-request.ts'
import { openWorld, type World } from './world.ts'

// Tests every route and every documented status of the OpenAPI document. It fails if a documented refusal has no request here.
const world = await openWorld()
const limited = await openWorld({ requestsPerMinute: 1 })
const unplugged = await openWorld({ isUnplugged: true })
const keyless = await openWorld({ canKeepSecrets: false })
afterAll(async () => {
  for (const opened of [world, limited, unplugged, keyless]) await opened.close()
})

type Refusal = (operation: DocumentedOperation) => Promise<Response>

function granted(operationId: string, inWorld: World = world): Promise<WireRequest> | WireRequest {
  return GRANTED[operationId as ServedId](inWorld)
}

/** Requests for the refusals that are the same for every operation, or for every operation with an id, a body or an If-Match. */
const MET_ALIKE: Partial<Record<ProblemCode, Refusal>> = {
  unauthenticated: async (operation) =>
    world.send(operation, await granted(operation.operationId), { key: 'car_nobody' }),
  forbidden: async (operation) => {
    return world.send(operation, await granted(operation.operationId), { key: await refusedKey(operation) })
  },
  admin_key_required: async (operation) =>
    world.send(operation, await granted(operation.operationId), { key: await world.projectKey() }),
  invalid_input: async (operation) => world.send(operation, await invalidFor(operation)),
  malformed_json: async (operation) =>
    world.send(operation, { ...(await granted(operation.operationId)), body: undefined }, { text: '{"name": ' }),
  body_too_large: async (operation) =>
    world.send(operation, { ...(await granted(operation.operationId)), body: { name: 'x'.repeat(2_000_000) } }),
  unsupported_media_type: async (operation) =>
    world.send(operation, await granted(operation.operationId), { mediaType: 'text/plain' }),
  schedule_not_found: (operation) => world.send(operation, missing(operation)),
  run_not_found: (operation) => world.send(operation, missing(operation)),
  grant_not_found: (operation) => world.send(operation, missing(operation)),
  key_not_found: (operation) => world.send(operation, missing(operation)),
  project_not_found: (operation) => world.send(operation, missing(operation)),
  not_found: async (operation) => {
    const { key } = await granted(operation.operationId)
    return world.send(operation, { ...missing(operation), ...(key === undefined ? {} : { key }) })
  },
  secret_not_found: (operation) => world.send(operation, missing(operation)),
  secrets_unavailable: async (operation) => keyless.send(operation, await granted(operation.operationId)),
  revision_conflict: async (operation) => {
    const request = await granted(operation.operationId)
    return world.send(operation, { ...request, headers: { 'if-match': '"999"' } })
  },
  rate_limited: async (operation) => {
    await limited.send(operation, missing(operation))
    return limited.send(operation, missing(operation))
  },
  unavailable: async (operation) => {
    // These are the only ids that are not looked up in the database.
    const own = operation.path.includes('/projects/') ? { id: 'default' } : {}
    // These answers need no database, but the check of any key except the admin key does.
    const { tag } = table[operation.operationId as ServedId]
    const isInMemory = operation.operationId === 'listTargetKinds' || tag === 'ticket'
    const options = isInMemory ? { key: await world.projectKey() } : {}
    return unplugged.send(operation, { ...missing(operation), ...own }, options)
  },
}

/** A key with slightly too few permissions. */
function refusedKey({ operationId }: DocumentedOperation): Promise<string> {
  const { role }: Operation = table[operationId as ServedId]
  return role === 'admin' ? world.memberKey() : world.removedKey()
}

/** A token of the form that tokens of callbacks have. */
const OTHER_TOKEN = {
  authorization: `Bearer ${Buffer.from('["default","default"]').toString('base64url')}.${'A'.repeat(43)}`,
}

/** A request that is valid except for its unknown id, if it has one. */
function missing({ operationId, path }: DocumentedOperation): WireRequest {
  const bodies: Partial<Record<string, unknown>> = {
    editSchedule: { name: 'Other' },
    pauseSchedule: { reason: 'gone' },
    skipSlot: { scheduledFor: '2027-01-01T00:00:00Z' },
    restoreSlot: { scheduledFor: '2027-01-01T00:00:00Z' },
    renewGrant: { expiresAt: null },
    putSecret: { value: 'kept' },
    putMember: { role: 'member' },
    putTenant: {},
    purgeProject: { name: 'default' },
    completeRun: { outcome: 'succeeded' },
    createTicket: { title: 'A question' },
    answerTicket: { answer: 'Yes' },
  }
  if (!path.includes('{')) return granted(operationId, world) as WireRequest
  return {
    id: path.includes('/members/') ? 'user:nobody' : NO_SUCH_ID,
    body: bodies[operationId],
    ...(operationId === 'editSchedule' ? { headers: { 'if-match': '"1"' } } : {}),
    ...(operationId === 'completeRun' ? { query: { attempt: '1' }, headers: OTHER_TOKEN } : {}),
    ...(operationId === 'heartbeatRun' ? { headers: OTHER_TOKEN } : {}),
  }
}

/** A request that is valid except for an unknown field in its body, or in its query if it has no body. */
async function invalidFor({ operationId, requestBody }: DocumentedOperation): Promise<WireRequest> {
  const request = await granted(operationId)
  if (requestBody === undefined) return { ...request, query: { nonsense: '1' } }
  // Which fields this body may have depends on its outcome.
  const rest = operationId === 'completeRun' ? { outcome: 'succeeded' } : {}
  return { ...request, body: { ...rest, nonsense: 1 } }
}

test('every operation is documented, and nothing else', () => {
  expect(documentedOperations.map(({ operationId }) => operationId).toSorted()).toEqual(Object.keys(table).toSorted())
})

describe.each(documentedOperations)('$method $path', (operation) => {
  const { operationId, responses } = operation
  const shape: Operation = table[operationId as ServedId]
  const codes = problemsOf(shape)
  const met = codes.filter((code) => {
    // Only the kinds of modules have such hooks: `packages/server/tests/http/target-hooks.test.ts` meets it.
    if (code === 'target_hook_failed') return false
    // The module keeps its tickets in memory, so only the check of a key needs the database.
    return code !== 'unavailable' || shape.tag !== 'ticket' || shape.access !== 'own'
  })

  test('a valid request succeeds as documented', async () => {
    const response = await world.send(operation, await granted(operationId))

    await expectDocumented(operation, response)
    expect(response.ok).toBe(true)
  })

  test('the statuses of all refusals are documented, and no others', () => {
    const statuses = new Set(codes.map((code) => String(PROBLEM_TYPES[code].status)))
    const refusals = Object.keys(responses).filter((status) => Number(status) >= 400)

    expect(new Set(refusals)).toEqual(statuses)
  })

  test.each(met)('a request is refused with %s as documented', async (code) => {
    const special = REFUSED[`${operationId} ${code}`]
    const meet = special === undefined ? MET_ALIKE[code] : () => meetSpecially(operation, special)
    if (meet === undefined) throw new Error(`no request here meets ${code} of ${operationId}`)

    const response = await meet(operation)
    const problem = await expectDocumented(operation, response)

    expect(response.status).toBe(PROBLEM_TYPES[code].status)
    if (shape.errors !== undefined) {
      expect(problem).toMatchObject({ error: { code: code.toUpperCase() } })
      return
    }
    expect(problem).toMatchObject({ code, type: problemTypeUri(code), status: response.status })
    expect(response.headers.has('retry-after')).toBe(RETRY_AFTER_PROBLEMS.includes(code))
    if (code === 'invalid_input') {
      const { errors } = problem as Problem
      expect(errors.find(({ field }) => field.includes('nonsense'))?.message).toMatch(/^expected /)
    }
  })
})

async function meetSpecially(
  operation: DocumentedOperation,
  prepare: (world: World) => Promise<WireRequest>,
): Promise<Response> {
  const request = await prepare(world)
  const response = await world.send(operation, request)
  await request.release?.()
  return response
}

/** Compares an answer with the document: its status, type, headers and body. Returns the body. */
async function expectDocumented(operation: DocumentedOperation, response: Response): Promise<unknown> {
  const { status, headers } = response
  const documented = operation.responses[status]
  if (documented === undefined) throw new Error(`${status} is not documented: ${await response.text()}`)
  const required = Object.keys(documented.headers ?? {}).filter(
    (name) => !/^(Idempotency-Replayed|Retry-After)$/.test(name),
  )
  expect(required.filter((name) => !headers.has(name))).toEqual([])
  const [mediaType] = Object.keys(documented.content ?? {})
  if (mediaType === undefined) {
    expect(await response.text()).toBe('')
    return undefined
  }
  expect(headers.get('content-type')?.split(';')[0]).toBe(mediaType)
  if (!mediaType.endsWith('json')) {
    await response.body?.cancel()
    return undefined
  }
  const body: unknown = await response.json()
  expect(faultsOf(operation, status, mediaType, body)).toEqual([])
  return body
}
