import { randomUUID } from 'node:crypto'

import { createClient, type OperationId } from '@carillon/api'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'

import { documentedOperations, type DocumentedOperation } from '../contract/document.ts'
import { SCHEDULE } from '../contract/wire-request.ts'
import { openWorld, type World } from '../contract/world.ts'
import { ATTACKS, type Theirs } from './attacks.ts'

/** Stands in everything of the other tenant that can hold a text. */
const CANARY = 'canary7f3a'
/** What their schedule can be searched by; no part of the canary, which must not be said to be found in any answer. */
const NAME_PART = 'plumbago'
const BASIL = { tenant: 'basil', project: `${CANARY}-project` }
const AMBER = { tenant: 'amber', project: 'kitchen' }

let world: World
let attackerKey: string
let theirs: Theirs
let theirKey: string

beforeAll(async () => {
  world = await openWorld()
  attackerKey = (await world.client.keys.create({ ...AMBER, subject: 'user:mallory', role: 'admin' })).key
  theirKey = (await world.client.keys.create({ ...BASIL, subject: `user:${CANARY}`, role: 'admin' })).key
  theirs = await furnish()
})
afterAll(() => world.close())

/** One of everything, with the canary in it. */
async function furnish(): Promise<Theirs> {
  const client = createClient(world.url, theirKey)
  const secretName = `${CANARY}-secret`
  await client.secrets.put(secretName, { value: `${CANARY}-value` })
  await client.members.put(`user:${CANARY}-member`, { role: 'member' })
  const { id: keyId } = await client.keys.create({
    project: BASIL.project,
    subject: `user:${CANARY}-2`,
    role: 'member',
  })
  const { id: grantId } = await client.grants.create({ scopes: ['http:dispatch:*'], billingAccountId: CANARY })
  const schedule = await client.schedules.create({
    ...SCHEDULE,
    name: `${CANARY} ${NAME_PART}`,
    target: { ...SCHEDULE.target, payload: { list: CANARY }, auth: { kind: 'bearer', secretRef: secretName } },
  })
  const [slot] = (await client.schedules.slots(schedule.id, { limit: 1 })).items
  const run = await client.schedules.run(schedule.id)
  return {
    ...BASIL,
    scheduleId: schedule.id,
    runId: run.id,
    grantId,
    ownGrantId: schedule.grantId,
    keyId,
    subject: `user:${CANARY}-member`,
    secretName,
    slot: slot?.scheduledFor ?? '',
    namePart: NAME_PART,
  }
}

/** Of the same shape, and nobody's. */
function nobodys(): Theirs {
  const name = `nobody${randomUUID().slice(0, 4)}`
  return {
    tenant: randomUUID().replace(/^./, 't').slice(0, BASIL.tenant.length),
    project: `${name}-project`,
    scheduleId: nobodysId(),
    runId: nobodysId(),
    grantId: nobodysId(),
    ownGrantId: nobodysId(),
    keyId: nobodysId(),
    subject: `user:${name}-member`,
    secretName: `${name}-secret`,
    slot: theirs.slot,
    namePart: name,
  }
}

function nobodysId(): string {
  return `01890000${randomUUID().slice(8)}`
}

interface Told {
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  readonly text: string
}

/** What is told, with whatever was named in the request put in brackets, and what no two answers share left out. */
async function tell(operation: DocumentedOperation, named: Theirs, attack: (theirs: Theirs) => object): Promise<Told> {
  const response = await world.send(operation, attack(named), { key: attackerKey })
  const isStream = response.headers.get('content-type')?.startsWith('text/event-stream') === true
  const text = isStream ? 'a stream' : await response.text()
  if (isStream) await response.body?.cancel()
  const headers = Object.fromEntries(
    [...response.headers].filter(([name]) => !/^(date|x-request-id|ratelimit|content-length|keep-alive)/.test(name)),
  )
  const bracketed = Object.entries<string>({ ...named })
    .filter(([name]) => name !== 'slot')
    .toSorted(([, a], [, b]) => b.length - a.length)
    .reduce((told, [name, value]) => told.replaceAll(value, `<${name}>`), text)
  return {
    status: response.status,
    headers,
    text: bracketed.replaceAll(/"(instance|createdAt|updatedAt|addedAt)":"[^"]*"/g, '"$1"'),
  }
}

test('every operation of the document is attacked: a new one must be listed', () => {
  expect(documentedOperations.map(({ operationId }) => operationId).toSorted()).toEqual(Object.keys(ATTACKS).toSorted())
})

describe('T-1, T-2: another tenant’s ids, in the path, the query, the body and the headers', () => {
  const cases = documentedOperations.flatMap((operation) =>
    ATTACKS[operation.operationId as OperationId].map((attack, index) => ({
      name: `${operation.operationId} ${index + 1}`,
      operation,
      attack,
    })),
  )

  test.each(cases)('$name is answered as if they did not exist, to the byte', async ({ operation, attack }) => {
    const ofNobody = nobodys()
    const found = await tell(operation, theirs, attack)
    const missing = await tell(operation, ofNobody, attack)

    expect(found).toEqual(missing)
    expect(JSON.stringify(found)).not.toContain(CANARY)
    expect(found.status).toBeLessThan(500)
  })

  test.each(documentedOperations.filter(({ method, path }) => method === 'get' && !path.includes('{id}')))(
    '$operationId is not moved to another tenant by a header',
    async (operation) => {
      const plain = await tell(operation, theirs, () => ({}))
      const { tenant, project } = theirs
      const headers = {
        'x-tenant': tenant,
        'x-tenant-id': tenant,
        'x-project': project,
        'x-project-id': project,
        'carillon-tenant': tenant,
        'carillon-project': project,
        'x-forwarded-host': tenant,
        'x-forwarded-user': theirs.subject,
        forwarded: `for=${tenant}`,
      }

      expect(await tell(operation, theirs, () => ({ headers }))).toEqual(plain)
      expect(plain.text).not.toContain(CANARY)
    },
  )

  test('and after all of it everything of theirs is as it was', async () => {
    const client = createClient(world.url, theirKey)
    const schedule = await client.schedules.get(theirs.scheduleId)

    expect(schedule).toMatchObject({
      name: `${CANARY} ${NAME_PART}`,
      state: 'active',
      revision: 1,
      grantWarning: null,
    })
    expect((await client.runs.get(theirs.runId)).state).toBe('pending')
    expect((await client.grants.get(theirs.grantId)).revokedAt).toBeNull()
    expect((await client.grants.get(theirs.ownGrantId)).revokedAt).toBeNull()
    expect((await client.keys.list()).items.filter(({ revokedAt }) => revokedAt !== null)).toEqual([])
    expect((await client.members.list()).items).toMatchObject([{ subject: theirs.subject, removedAt: null }])
    expect((await client.secrets.list()).items).toMatchObject([{ name: theirs.secretName, version: 1 }])
    expect((await client.schedules.history(theirs.scheduleId)).items).toHaveLength(1)
  })
})

test('T-10: the same Idempotency-Key of two tenants makes two schedules', async () => {
  const idempotencyKey = 'the same one'
  const made = await Promise.all(
    [attackerKey, theirKey].map((key) => createClient(world.url, key).schedules.create(SCHEDULE, { idempotencyKey })),
  )

  expect(new Set(made.map(({ id }) => id)).size).toBe(2)
})
