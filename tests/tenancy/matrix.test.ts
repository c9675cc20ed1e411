import { createOperationClient } from '@carillon/api'
import { ticketOperations } from '@carillon/server/testing/ticket-module'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'

import { documentedOperations, type DocumentedOperation, type ServedId } from '../contract/document.ts'
import { SCHEDULE, type WireRequest } from '../contract/wire-request.ts'
import { openWorld, type World } from '../contract/world.ts'
import { ATTACKS } from './attacks.ts'
import { idsIn, tell, type Revealed } from './telling.ts'
import type { Theirs } from './theirs.ts'
import {
  CANARY,
  furnishMore,
  furnishTheirs,
  unknownLike,
  openAsker,
  openTheirs,
  PROJECT,
  type Asker,
} from './two-tenants.ts'

/** The codes of refusals that happen before the named resources are looked up. */
const SHAPE_CODES = ['invalid_input', 'malformed_json', 'revision_required', 'unsupported_media_type']

let world: World
/** A tenant that never writes a name of the owner, so none may appear in the answers to it. */
let reader: Asker
/** A tenant that may write names of the owner into its own resources. */
let writer: Asker
/** A tenant that has no resource with the names that it deletes. */
let remover: Asker
let owner: Asker
let theirs: Theirs
/** The ids of all resources of the owner. */
let theirIds: ReadonlySet<string>
let before: string
const scheduleIds = new Map<Asker, string>()

beforeAll(async () => {
  world = await openWorld()
  reader = await openAsker(world, 'amber')
  writer = await openAsker(world, 'olive')
  remover = await openAsker(world, 'sage')
  owner = await openTheirs(world)
  await furnishMine(reader)
  theirs = await furnishTheirs(world, owner)
  await furnishMine(writer)
  before = await everythingOf(owner)
  theirIds = new Set(idsIn(before))
})
afterAll(() => world.close())

/** Creates resources whose names sort before and after the owner's names, but not between the owner's and unused names. */
async function furnishMine(asker: Asker): Promise<void> {
  const { client } = asker
  for (const name of ['amber', 'zinc']) {
    await client.secrets.put(name, { value: name })
    await client.members.put(`user:${name}`, { role: 'member' })
  }
  await client.grants.create({ scopes: ['http:dispatch:*'] })
  const { id } = await client.schedules.create(SCHEDULE)
  await client.schedules.run(id)
  scheduleIds.set(asker, id)
}

/** Everything that the owner sees of its own resources. */
async function everythingOf({ client, key }: Asker): Promise<string> {
  const tickets = createOperationClient(ticketOperations, world.url, key)
  return JSON.stringify([
    await client.schedules.list(),
    await client.schedules.runs(theirs.scheduleId),
    await client.schedules.slots(theirs.scheduleId, { limit: 5 }),
    await client.schedules.history(theirs.scheduleId),
    await client.grants.list(),
    await client.keys.list(),
    await client.members.list(),
    await client.secrets.list(),
    await world.client.keys.list({ tenant: theirs.tenant, project: theirs.theirProject }),
    await world.client.tenants.get(theirs.tenant),
    await client.projects.previewPurge(PROJECT),
    await tickets.listProjectTickets({ params: { project: PROJECT } }),
  ])
}

function askerOf({ method }: DocumentedOperation): Asker {
  if (method === 'get') return reader
  return method === 'delete' ? remover : writer
}

function ask(operation: DocumentedOperation, request: WireRequest, named?: Theirs): Promise<Revealed> {
  const { key } = askerOf(operation)
  return tell(world, { key, operation, request, ...(named === undefined ? {} : { named }) })
}

function expectNothingOfTheirs({ whole }: Revealed): void {
  expect(whole).not.toContain(CANARY)
  expect(idsIn(whole).filter((id) => theirIds.has(id))).toEqual([])
}

/** The requests that name no resource, or only a resource of the caller. */
function plainQuestions(): [DocumentedOperation, WireRequest][] {
  const own: Readonly<Record<string, string>> = {
    getTenant: reader.tenant,
    previewPurge: PROJECT,
    listRuns: scheduleIds.get(reader) ?? '',
    listProjectTickets: PROJECT,
  }
  return documentedOperations
    .filter(({ method, path, operationId }) => method === 'get' && (!path.includes('{') || operationId in own))
    .map((operation) => {
      const id = own[operation.operationId]
      return [operation, id === undefined ? {} : { id }]
    })
}

test('every operation of the document is attacked, so a new one must be listed', () => {
  expect(documentedOperations.map(({ operationId }) => operationId).toSorted()).toEqual(Object.keys(ATTACKS).toSorted())
})

describe('ids, names and cursors of another tenant, in the path, the query, the body and the headers', () => {
  test.each(documentedOperations)(
    '$operationId answers exactly as if they did not exist, and not only because of the shape of the request',
    async (operation) => {
      const mine = { project: PROJECT, scheduleId: scheduleIds.get(askerOf(operation)) ?? '' }
      const codes: (string | null)[] = []
      for (const [index, attack] of ATTACKS[operation.operationId as ServedId].entries()) {
        const unknown = unknownLike(theirs)
        const found = await ask(operation, attack(theirs, mine), theirs)
        const missing = await ask(operation, attack(unknown, mine), unknown)

        const { whole: _found, ...answerAboutTheirs } = found
        const { whole: _missing, ...answerAboutUnknown } = missing
        expect(answerAboutTheirs, `attack ${index + 1}`).toEqual(answerAboutUnknown)
        expectNothingOfTheirs(found)
        expect(found.status).toBeLessThan(500)
        codes.push(found.code)
      }

      expect(codes.filter((code) => code === null || !SHAPE_CODES.includes(code))).not.toEqual([])
    },
  )

  test.each(documentedOperations.filter(({ method, path }) => method === 'get' && !path.includes('{')))(
    '$operationId is not moved to another tenant by a header',
    async (operation) => {
      const plain = await ask(operation, {})
      const { tenant, theirProject, subject } = theirs
      const headers = {
        'x-tenant': tenant,
        'x-tenant-id': tenant,
        'x-project': theirProject,
        'x-project-id': theirProject,
        'carillon-tenant': tenant,
        'carillon-project': theirProject,
        'x-forwarded-host': tenant,
        'x-forwarded-user': subject,
        forwarded: `for=${tenant}`,
      }

      const { whole: _moved, ...moved } = await ask(operation, { headers })
      expect(plain).toMatchObject(moved)
      expect(plain.status).toBe(200)
      expectNothingOfTheirs(plain)
    },
  )

  test('deleting and purging a project does not affect the project of the same name of another tenant', async () => {
    const { client } = await openAsker(world, 'thyme')
    await client.schedules.create(SCHEDULE)
    await client.secrets.put(theirs.secretName, { value: 'to be purged' })

    expect(await client.projects.deleteSchedules(PROJECT)).toEqual({ deleted: 1 })
    expect(await client.projects.purge(PROJECT, { name: PROJECT })).toMatchObject({ schedules: 1, secrets: 1 })
  })

  test("after all attacks the other tenant's resources are unchanged", async () => {
    expect(await everythingOf(owner)).toBe(before)
  })
})

test('the answers to a tenant do not depend on the resources of another tenant', async () => {
  const answers = async (): Promise<unknown[]> => {
    const told: unknown[] = []
    for (const [operation, request] of plainQuestions()) {
      const { whole: _whole, ...answer } = await ask(operation, request)
      expect(answer).toMatchObject({ status: 200 })
      told.push([operation.operationId, answer])
    }
    return told
  }

  const earlier = await answers()
  await furnishMore(owner.client, theirs.scheduleId)
  await furnishMore(owner.client, theirs.scheduleId)

  expect(await answers()).toEqual(earlier)
})

test('the same Idempotency-Key from two tenants creates two schedules', async () => {
  const idempotencyKey = 'the same one'
  const made = await Promise.all([
    writer.client.schedules.create(SCHEDULE, { idempotencyKey }),
    owner.client.schedules.create(SCHEDULE, { idempotencyKey }),
  ])

  expect(new Set(made.map(({ id }) => id)).size).toBe(2)
})
