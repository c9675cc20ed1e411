import { describe, expect, test } from 'vitest'

import type { Tx } from '../../src/db/database.ts'
import type { Problem } from '../../src/kernel/errors.ts'
import type { PlacedDraft, Target } from '../../src/ports/target.ts'
import { emptiedPipelines } from '../emptied-pipeline.ts'
import { CALLER, EVERY_MINUTE, HOUR } from '../pipeline.ts'
import type { TestSpec } from '../scripted-target.ts'
import { sql } from '../sql.ts'

const pipelineAt = emptiedPipelines()
const START = '2026-03-02T09:00:30Z'

type CheckIn = (tx: Tx, draft: PlacedDraft<TestSpec>) => Promise<readonly Problem[]>
type Preview = NonNullable<Target<TestSpec>['preview']>

async function setup(hooks: { checkIn?: CheckIn; preview?: Preview }) {
  const pipeline = await pipelineAt(START)
  const target = Object.assign(pipeline.target, hooks)
  const { scheduler } = pipeline
  const names = async () => (await scheduler.list(CALLER)).map(({ name }) => name).toSorted()
  return { pipeline, target, scheduler, names }
}

const named = (name: string, target: object = {}) => ({ ...EVERY_MINUTE, name, target: { kind: 'test', ...target } })
/** Writes a member, as a module would write a row of its own. */
const writeMember = (tx: Tx) =>
  sql`
    insert into carillon.members (tenant_id, project_id, subject, role, added_by_subject, added_at)
    values ('acme', 'web', 'user:written', 'member', 'user:alice', now())
    on conflict do nothing`.execute(tx)
const refuse: CheckIn = async (_tx, { spec }) =>
  (spec as { bad?: boolean }).bad === true ? [{ path: 'target.desk', message: 'expected a desk, got none' }] : []

describe('checkIn', () => {
  test('sees the draft with its project, its owner and its policy, in the transaction that writes', async () => {
    const drafts: unknown[] = []
    const { scheduler } = await setup({
      checkIn: async (tx, draft) => {
        const { rows } = await sql<{ user: string }>`select current_user::text as user`.execute(tx)
        drafts.push(rows[0]?.user, draft)
        return []
      },
    })

    const { id, grantId } = await scheduler.create(CALLER, named('a', { timeoutSeconds: 5 }))
    await scheduler.edit(CALLER, id, { policy: { overlap: 'allow' } }, { revision: 1 })

    const draft = {
      tenantId: 'acme',
      projectId: 'web',
      ownerSubject: 'user:alice',
      spec: { kind: 'test', timeoutSeconds: 5 },
    }
    expect(drafts).toMatchObject([
      'carillon_api',
      { ...draft, grantId: null, policy: { overlap: 'forbid' } },
      'carillon_api',
      { ...draft, grantId, policy: { overlap: 'allow' } },
    ])
  })

  test('refuses a create and an edit with the fields as it names them, and nothing is written', async () => {
    const { scheduler, names } = await setup({ checkIn: refuse })
    const { id } = await scheduler.create(CALLER, named('good'))
    const problems = [{ path: 'target.desk', message: 'expected a desk, got none' }]

    await expect(scheduler.create(CALLER, named('bad', { bad: true }))).rejects.toMatchObject({
      code: 'invalid_input',
      problems,
    })
    await expect(
      scheduler.edit(CALLER, id, { target: { kind: 'test', bad: true } }, { revision: 1 }),
    ).rejects.toMatchObject({ code: 'invalid_input', problems })

    expect(await names()).toEqual(['good'])
    expect(await scheduler.get(CALLER, id)).toMatchObject({ revision: 1 })
  })

  test('is not asked about an input that is wrong by itself', async () => {
    let calls = 0
    const { scheduler } = await setup({ checkIn: async () => ((calls += 1), []) })

    await expect(scheduler.create(CALLER, { ...EVERY_MINUTE, name: '' })).rejects.toThrow('name')

    expect(calls).toBe(0)
  })

  test('refuses a batch with the paths of all inputs at fault, up to as many as an error names', async () => {
    let calls = 0
    const { scheduler, names } = await setup({ checkIn: (tx, draft) => ((calls += 1), refuse(tx, draft)) })
    const many = Array.from({ length: 200 }, (_, index) => named(`n${index}`, { bad: index !== 1 }))

    const refused: unknown = await scheduler.createMany(CALLER, many).catch((error: unknown) => error)

    expect(refused).toMatchObject({ code: 'invalid_input' })
    const { problems } = refused as { problems: readonly Problem[] }
    expect(problems.slice(0, 2).map(({ path }) => path)).toEqual([
      'schedules[0].target.desk',
      'schedules[2].target.desk',
    ])
    expect(calls).toBe(problems.length + 1)
    expect(await names()).toEqual([])
  })

  test('that refuses one of several concurrent creates fails only that one', async () => {
    const { scheduler, names } = await setup({ checkIn: refuse })

    const results = await Promise.allSettled([
      scheduler.create(CALLER, named('a')),
      scheduler.create(CALLER, named('b', { bad: true })),
      scheduler.create(CALLER, named('c')),
    ])

    expect(results.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'fulfilled'])
    expect(await names()).toEqual(['a', 'c'])
  })

  test.each<[string, CheckIn]>([
    ['throws', () => Promise.reject(new Error('the secret of the module'))],
    ['sends a statement that Postgres refuses', (tx) => sql`select 1 / 0`.execute(tx) as never],
    ['returns something else than problems', async () => [{ path: 'x' }] as never],
  ])('that %s fails the request with a closed code, and nothing is written', async (_what, checkIn) => {
    const { scheduler, names } = await setup({ checkIn })

    const failed: unknown = await scheduler.create(CALLER, named('a')).catch((error: unknown) => error)

    expect(failed).toMatchObject({
      code: 'target_hook_failed',
      message: 'the target kind test could not check this schedule: checkIn failed',
      cause: expect.any(Error) as Error,
    })
    expect(await names()).toEqual([])
  })

  test('that does not end fails the request after 10 seconds, and can send nothing afterwards', async () => {
    const late = Promise.withResolvers<unknown>()
    const called = Promise.withResolvers<void>()
    const { pipeline, scheduler } = await setup({
      checkIn: async (tx) => {
        called.resolve()
        await pipeline.clock.sleep(HOUR)
        late.resolve(await writeMember(tx).catch((error: unknown) => error))
        return []
      },
    })

    const created = scheduler.create(CALLER, named('a')).catch((error: unknown) => error)
    await called.promise
    pipeline.clock.advance(10_000)
    const failed = await created
    pipeline.clock.advance(HOUR)

    expect(failed).toMatchObject({ code: 'target_hook_failed' })
    expect(await late.promise).toMatchObject({ message: expect.stringContaining('while the hook runs') as string })
  })
})

describe('a preview', () => {
  test('asks checkIn as a create and an edit would, and keeps nothing that it writes', async () => {
    const { scheduler, pipeline } = await setup({
      checkIn: async (tx, draft) => {
        await writeMember(tx)
        return refuse(tx, draft)
      },
    })
    const members = async () =>
      (await sql`select from carillon.members where subject = 'user:written'`.execute(pipeline.db)).rows.length

    await scheduler.planCreate(CALLER, named('a'))
    await expect(scheduler.planCreate(CALLER, named('a', { bad: true }))).rejects.toThrow('target.desk')
    const afterPreview = await members()
    const { id } = await scheduler.create(CALLER, named('a'))
    const afterCreate = await members()

    expect([afterPreview, afterCreate]).toEqual([0, 1])
    await expect(scheduler.planEdit(CALLER, id, { target: { kind: 'test', bad: true } })).rejects.toMatchObject({
      code: 'invalid_input',
    })
  })

  test('shows what the kind of the target adds for the slots, of creates and of edits, and keeps nothing', async () => {
    const { scheduler, pipeline } = await setup({
      preview: async (tx, { spec }, slots) => {
        await writeMember(tx)
        return { cost: slots.length * (spec.timeoutSeconds ?? 1), first: new Date(slots[0] ?? 0).toISOString() }
      },
    })
    const { id } = await scheduler.create(CALLER, named('b'))

    const created = await scheduler.planCreate(CALLER, named('a', { timeoutSeconds: 3 }))
    const many = await scheduler.planCreateMany(CALLER, [named('a'), named('b', { timeoutSeconds: 2 })])
    const edited = await scheduler.planEdit(CALLER, id, {
      cadence: { ...EVERY_MINUTE.cadence, expression: '0 * * * *' },
    })

    expect(created.preview).toEqual({ cost: 15, first: '2026-03-02T09:01:00.000Z' })
    expect(many.map(({ preview }) => preview)).toMatchObject([{ cost: 5 }, { cost: 10 }])
    expect(edited.preview).toEqual({ cost: 5, first: '2026-03-02T10:00:00.000Z' })
    const written = await sql`select from carillon.members where subject = 'user:written'`.execute(pipeline.db)
    expect(written.rows).toEqual([])
  })

  test('of a kind that adds nothing has no such field', async () => {
    const { scheduler } = await setup({})

    expect(await scheduler.planCreate(CALLER, named('a'))).not.toHaveProperty('preview')
  })

  test.each<[string, Preview]>([
    ['throws', () => Promise.reject(new Error('the secret of the module'))],
    ['returns what is no JSON', async () => 1n as never],
  ])('fails with a closed code if the kind %s', async (_what, preview) => {
    const { scheduler } = await setup({ preview })

    await expect(scheduler.planCreate(CALLER, named('a'))).rejects.toMatchObject({
      code: 'target_hook_failed',
      message: 'the target kind test could not check this schedule: preview failed',
    })
  })
})
