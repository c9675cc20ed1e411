import { randomUUID } from 'node:crypto'

import { createClient, type Client } from '@carillon/api'

import { ticketOf } from '../contract/requests.ts'
import { SCHEDULE } from '../contract/wire-request.ts'
import type { World } from '../contract/world.ts'
import type { Theirs } from './theirs.ts'

/** This word is in every text of the other tenant. */
export const CANARY = 'canary7f3a'
/** A word in the name of the other tenant's schedule. It is not part of the canary, because a search may repeat it in its answer. */
const NAME_PART = 'plumbago'
/** The name of a project of every tenant, so that only the tenant separates them. */
export const PROJECT = 'kitchen'
const THEIR_TENANT = 'basil'

/** A tenant that sends requests, with the key of an admin. */
export interface Asker {
  readonly tenant: string
  readonly key: string
  readonly client: Client
}

export async function openAsker(world: World, tenant: string, subject = 'user:mallory'): Promise<Asker> {
  const { key } = await world.client.keys.create({ tenant, project: PROJECT, subject, role: 'admin' })
  return { tenant, key, client: createClient(world.url, key) }
}

export function openTheirs(world: World): Promise<Asker> {
  return openAsker(world, THEIR_TENANT, `user:${CANARY}`)
}

/** Creates two of every listed resource, with the canary in it. */
export async function furnishTheirs(world: World, { client, key }: Asker): Promise<Theirs> {
  const [secretName, subject] = [`${CANARY}-secret`, `user:${CANARY}-member`]
  const theirProject = `${CANARY}-project`
  // A tenant without limits of its own gets the same answer as a tenant that does not exist.
  await world.client.tenants.put(THEIR_TENANT, { maxSchedulesPerProject: 321 })
  await world.client.keys.create({ tenant: THEIR_TENANT, project: theirProject, subject, role: 'admin' })
  await client.secrets.put(secretName, { value: `${CANARY}-value` })
  await client.members.put(subject, { role: 'member' })
  const { id: keyId } = await client.keys.create({ project: PROJECT, subject: `user:${CANARY}-2`, role: 'member' })
  const { id: grantId } = await client.grants.create({ scopes: ['http:dispatch:*'], billingAccountId: CANARY })
  const schedule = await client.schedules.create({
    ...SCHEDULE,
    name: `${CANARY} ${NAME_PART}`,
    target: { ...SCHEDULE.target, payload: { list: CANARY }, auth: { kind: 'bearer', secretRef: secretName } },
    policy: { overlap: 'allow' },
  })
  const idempotencyKey = `${CANARY}-idempotency`
  const batchKey = `${CANARY}-batch`
  await client.schedules.create(SCHEDULE, { idempotencyKey })
  await client.schedules.createMany([SCHEDULE], { idempotencyKey: batchKey })
  const [slot] = (await client.schedules.slots(schedule.id, { limit: 1 })).items
  const run = await client.schedules.run(schedule.id)
  await furnishMore(client, schedule.id)
  return {
    tenant: THEIR_TENANT,
    theirProject,
    scheduleId: schedule.id,
    runId: run.id,
    grantId,
    ownGrantId: schedule.grantId,
    keyId,
    ticketId: await ticketOf(world, key),
    subject,
    secretName,
    slot: slot?.scheduledFor ?? '',
    namePart: NAME_PART,
    idempotencyKey,
    batchKey,
    ...(await cursorsOf(client, schedule.id)),
  }
}

/** Creates one more of every resource that is listed or counted. */
export async function furnishMore(client: Client, scheduleId: string): Promise<void> {
  const name = `${CANARY}-${randomUUID()}`
  await client.secrets.put(name, { value: CANARY })
  await client.members.put(`user:${name}`, { role: 'member' })
  await client.keys.create({ project: PROJECT, subject: `user:${name}`, role: 'member' })
  await client.grants.create({ scopes: ['http:dispatch:*'], billingAccountId: name })
  const { id } = await client.schedules.create({ ...SCHEDULE, name })
  await client.schedules.pause(id, { reason: CANARY })
  await client.schedules.run(scheduleId)
}

/** The cursors after the first item of each list. */
async function cursorsOf(client: Client, scheduleId: string): Promise<Pick<Theirs, CursorName>> {
  const first = { limit: 1 }
  return {
    schedulesCursor: cursorOf(await client.schedules.list(first)),
    runsCursor: cursorOf(await client.schedules.runs(scheduleId, first)),
    historyCursor: cursorOf(await client.schedules.history(scheduleId, first)),
    grantsCursor: cursorOf(await client.grants.list(first)),
    keysCursor: cursorOf(await client.keys.list(first)),
    membersCursor: cursorOf(await client.members.list(first)),
    secretsCursor: cursorOf(await client.secrets.list(first)),
  }
}

type CursorName = Extract<keyof Theirs, `${string}Cursor`>

function cursorOf({ nextCursor }: { readonly nextCursor: string | null }): string {
  if (nextCursor === null) throw new Error('expected a second page: an attack by a cursor needs one')
  return nextCursor
}

/** Values of the same shape and at the same positions of every list, which do not exist. */
export function unknownLike(theirs: Theirs): Theirs {
  const name = `nobody${randomUUID().slice(0, 4)}`
  const [tenant, scheduleId] = [randomUUID().replace(/^./, 't').slice(0, THEIR_TENANT.length), unknownId()]
  const cursorLike = (cursor: string): string => {
    const named = readCursor(cursor).replaceAll(CANARY, name).replaceAll(theirs.scheduleId, scheduleId)
    // The end of an id is random, so the items after the cursor stay the same.
    const text = named.replace(/[0-9a-f]{12}(?="\]$)/, randomUUID().slice(-12))
    return Buffer.from(text).toString('base64url')
  }
  return {
    tenant,
    theirProject: `${name}-project`,
    scheduleId,
    runId: unknownId(),
    grantId: unknownId(),
    ownGrantId: unknownId(),
    keyId: unknownId(),
    ticketId: unknownId(),
    subject: `user:${name}-member`,
    secretName: `${name}-secret`,
    slot: theirs.slot,
    namePart: name,
    idempotencyKey: `${name}-idempotency`,
    batchKey: `${name}-batch`,
    schedulesCursor: cursorLike(theirs.schedulesCursor),
    runsCursor: cursorLike(theirs.runsCursor),
    historyCursor: cursorLike(theirs.historyCursor),
    grantsCursor: cursorLike(theirs.grantsCursor),
    keysCursor: cursorLike(theirs.keysCursor),
    membersCursor: cursorLike(theirs.membersCursor),
    secretsCursor: cursorLike(theirs.secretsCursor),
  }
}

export function readCursor(cursor: string): string {
  return Buffer.from(cursor, 'base64url').toString('utf8')
}

function unknownId(): string {
  return `01890000${randomUUID().slice(8)}`
}
