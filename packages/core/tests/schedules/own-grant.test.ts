import { expect, test } from 'vitest'
import { z } from 'zod'

import { Grants } from '../../src/access/grants.ts'
import { Members } from '../../src/access/members.ts'
import type { Schedule } from '../../src/ledger/records.ts'
import type { Target } from '../../src/ports/target.ts'
import { Scheduler } from '../../src/scheduler.ts'
import { countRows, emptiedPipelines } from '../emptied-pipeline.ts'
import { CALLER, EVERY_MINUTE, type Pipeline } from '../pipeline.ts'
import { SUCCEEDED } from '../scripted-target.ts'
import { sql } from '../sql.ts'

const pipelineAt = emptiedPipelines()
const START = '2026-03-02T09:00:30Z'

interface HostSpec {
  readonly kind: 'host'
  readonly host: string
}

/** A target that needs a different scope for each host. */
const hostTarget: Target<HostSpec> = {
  kind: 'host',
  schema: z.strictObject({ kind: z.literal('host'), host: z.string() }),
  policy: { retry: { maxAttempts: 1, baseSeconds: 1, capSeconds: 1 } },
  requiredScope: ({ host }) => `host:call:${host}`,
  timeoutMs: () => 1000,
  dispatch: () => Promise.resolve(SUCCEEDED),
}

function open({ db, clock }: Pipeline) {
  const scheduler = new Scheduler({ db, clock, targets: new Map<string, Target>([['host', hostTarget]]) })
  const grants = new Grants({ db, clock })
  const create = (host: string, rest: object = {}): Promise<Schedule> =>
    scheduler.create(CALLER, { ...EVERY_MINUTE, target: { kind: 'host', host }, ...rest })
  return { scheduler, grants, create }
}

test('a schedule that names no grant gets its own grant, with exactly the scope of its target (I8)', async () => {
  const { grants, create } = open(await pipelineAt(START))

  const schedule = await create('a.example.com')

  expect(await grants.get(CALLER, schedule.grantId)).toMatchObject({
    scopes: ['host:call:a.example.com'],
    scheduleId: schedule.id,
    subject: 'user:alice',
    createdBy: 'user:alice',
    expiresAt: null,
    revokedAt: null,
  })
})

test('deleting a schedule revokes its own grants of every revision, and no given grant', async () => {
  const { scheduler, grants, create } = open(await pipelineAt(START))
  const shared = await grants.create(CALLER, { scopes: ['host:call:*'] })
  const first = await create('a.example.com')
  const edit = { target: { kind: 'host', host: 'b.example.com' } }
  const second = await scheduler.edit(CALLER, first.id, edit, { revision: 1 })
  await scheduler.edit(CALLER, first.id, { grantId: shared.id }, { revision: 2 })

  await scheduler.delete(CALLER, first.id)

  for (const id of [first.grantId, second.grantId]) {
    expect(await grants.get(CALLER, id)).toMatchObject({ revokedAt: Date.parse(START), revokedBy: 'user:alice' })
  }
  expect(await grants.get(CALLER, shared.id)).toMatchObject({ revokedAt: null })
})

test('deleting a project revokes the own grants of all its schedules', async () => {
  const { scheduler, grants, create } = open(await pipelineAt(START))
  const schedules = [await create('a.example.com'), await create('b.example.com')]

  await scheduler.deleteProject(CALLER)

  const all = await grants.list(CALLER)
  expect(all.map(({ revokedAt }) => revokedAt)).toEqual(schedules.map(() => Date.parse(START)))
})

test('an edit to a target with a wider scope gets a new grant; the old grant stays for runs of its revision', async () => {
  const { scheduler, grants, create } = open(await pipelineAt(START))
  const schedule = await create('a.example.com')

  const edited = await scheduler.edit(
    CALLER,
    schedule.id,
    { target: { kind: 'host', host: 'b.example.com' } },
    { revision: 1 },
  )

  expect(edited.grantId).not.toBe(schedule.grantId)
  expect(await grants.get(CALLER, edited.grantId)).toMatchObject({ scopes: ['host:call:b.example.com'] })
  expect(await grants.get(CALLER, schedule.grantId)).toMatchObject({ revokedAt: null })
})

test('an edit replaces a revoked grant only if it asks for a grant', async () => {
  const { scheduler, grants, create } = open(await pipelineAt(START))
  const schedule = await create('a.example.com')
  await grants.revoke(CALLER, schedule.grantId)

  const renamed = await scheduler.edit(CALLER, schedule.id, { name: 'other' }, { revision: 1 })
  expect(renamed).toMatchObject({ grantId: schedule.grantId, isGrantRevoked: true })

  const asked = await scheduler.edit(CALLER, schedule.id, { grantId: null }, { revision: 2 })
  expect(asked).toMatchObject({ isGrantRevoked: false })
  expect(asked.grantId).not.toBe(schedule.grantId)
})

test('an edit to another host neither replaces a revoked grant nor extends an expiring one', async () => {
  const { scheduler, grants, create } = open(await pipelineAt(START))
  const toB = { target: { kind: 'host', host: 'b.example.com' } }
  const revoked = await create('a.example.com')
  await grants.revoke(CALLER, revoked.grantId)
  const ending = await create('a.example.com')
  const expiresAt = Date.parse(START) + 3_600_000
  await grants.renew(CALLER, ending.grantId, { expiresAt })

  await expect(scheduler.edit(CALLER, revoked.id, toB, { revision: 1 })).rejects.toMatchObject({
    problems: [
      {
        path: 'grantId',
        message: 'expected a grant that is in force, got one that is revoked: set grantId to null to create another',
      },
    ],
  })
  expect(await scheduler.edit(CALLER, ending.id, toB, { revision: 1 })).toMatchObject({ grantExpiresAt: expiresAt })
})

test('every change of a schedule’s own grant is in its history once', async () => {
  const { scheduler, grants, create } = open(await pipelineAt(START))
  const schedule = await create('a.example.com')

  await grants.renew(CALLER, schedule.grantId, { expiresAt: Date.parse('2026-04-01T00:00:00Z') })
  await grants.revoke(CALLER, schedule.grantId)
  await grants.revoke(CALLER, schedule.grantId)

  const history = (await scheduler.history(CALLER, schedule.id)).toReversed()
  expect(history.map(({ change, actor, reason }) => [change, actor, reason])).toEqual([
    ['created', 'user:alice', null],
    ['grant_renewed', 'user:alice', '2026-04-01T00:00:00.000Z'],
    ['grant_revoked', 'user:alice', null],
  ])
})

test('a user owns its schedules; a service creates schedules for users, but not for removed ones', async () => {
  const pipeline = await pipelineAt(START)
  const { scheduler } = open(pipeline)
  const input = { ...EVERY_MINUTE, target: { kind: 'host', host: 'a.example.com' }, ownerSubject: 'user:bob' }
  const service = { ...CALLER, subject: 'service:portal' }

  await expect(scheduler.create(CALLER, input)).rejects.toMatchObject({ problems: [{ path: 'ownerSubject' }] })
  await expect(scheduler.planCreate(CALLER, input)).rejects.toMatchObject({ problems: [{ path: 'ownerSubject' }] })
  expect(await scheduler.create(service, input)).toMatchObject({
    ownerSubject: 'user:bob',
    createdBy: 'service:portal',
  })

  await new Members({ db: pipeline.db, clock: pipeline.clock }).put(CALLER, 'user:bob', 'member')
  await new Members({ db: pipeline.db, clock: pipeline.clock }).remove(CALLER, 'user:bob')
  await expect(scheduler.create(service, input)).rejects.toMatchObject({ problems: [{ path: 'ownerSubject' }] })
})

test('asking for a grant of its own changes nothing if the schedule has one', async () => {
  const pipeline = await pipelineAt(START)
  const { scheduler, create } = open(pipeline)
  const schedule = await create('a.example.com')
  const before = await countRows(pipeline)

  expect(await scheduler.edit(CALLER, schedule.id, { grantId: null }, { revision: 1 })).toEqual(schedule)
  expect(await countRows(pipeline)).toEqual(before)
})

test.each([
  ['does not cover the target', { scopes: ['host:call:b.example.com'] }, 'covers host:call:a.example.com'],
  ['covers only subdomains of the host', { scopes: ['host:call:*.a.example.com'] }, 'covers host:call:a.example.com'],
])('a create with a grant that %s is rejected, and nothing is written', async (_what, input, expected) => {
  const pipeline = await pipelineAt(START)
  const { grants, create } = open(pipeline)
  const grant = await grants.create(CALLER, input)
  const before = await countRows(pipeline)

  await expect(create('a.example.com', { grantId: grant.id })).rejects.toMatchObject({
    code: 'invalid_input',
    problems: [{ path: 'grantId', message: expect.stringContaining(expected) as string }],
  })
  expect(await countRows(pipeline)).toEqual(before)
})

test.each([
  ['revoked', `revoked_at = '2026-03-02T09:00:00Z', revoked_by_subject = 'user:root'`],
  ['expired', `expires_at = '2026-03-02T09:00:00Z'`],
])('a create and an edit with a grant that is %s are rejected', async (what, change) => {
  const pipeline = await pipelineAt(START)
  const { scheduler, grants, create } = open(pipeline)
  const grant = await grants.create(CALLER, { scopes: ['host:call:*'] })
  await sql`update carillon.execution_grants set ${sql.raw(change)} where id = ${grant.id}`.execute(pipeline.db)
  const schedule = await create('a.example.com')
  const refusal = { problems: [{ path: 'grantId', message: expect.stringContaining(what) as string }] }

  await expect(create('a.example.com', { grantId: grant.id })).rejects.toMatchObject(refusal)
  await expect(scheduler.edit(CALLER, schedule.id, { grantId: grant.id }, { revision: 1 })).rejects.toMatchObject(
    refusal,
  )
})

test('the own grant of another schedule is rejected like a grant that does not exist', async () => {
  const { create } = open(await pipelineAt(START))
  const other = await create('a.example.com')

  await expect(create('a.example.com', { grantId: other.grantId })).rejects.toMatchObject({
    problems: [{ path: 'grantId', message: expect.stringContaining("got another schedule's own grant") as string }],
  })
})

test('a schedule with a given grant cannot be edited to a target outside its scope', async () => {
  const { scheduler, grants, create } = open(await pipelineAt(START))
  const grant = await grants.create(CALLER, { scopes: ['host:call:a.example.com'] })
  const schedule = await create('a.example.com', { grantId: grant.id })

  const edit = scheduler.edit(CALLER, schedule.id, { target: { kind: 'host', host: 'b.example.com' } }, { revision: 1 })

  await expect(edit).rejects.toMatchObject({ problems: [{ path: 'grantId' }] })
  const plan = scheduler.planEdit(CALLER, schedule.id, { target: { kind: 'host', host: 'b.example.com' } })
  await expect(plan).rejects.toMatchObject({ problems: [{ path: 'grantId' }] })
})
