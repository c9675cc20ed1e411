import { expect, test } from 'vitest'

import { createDb } from '../../src/db/database.ts'
import { createPool } from '../../src/db/pool.ts'
import type { Caller } from '../../src/kernel/scope.ts'
import { Scheduler } from '../../src/scheduler.ts'
import type { SchedulerOptions } from '../../src/schedules/options.ts'
import { countRows, emptiedPipelines } from '../emptied-pipeline.ts'
import { CALLER, EVERY_MINUTE, type Pipeline } from '../pipeline.ts'
import { sql } from '../sql.ts'

const pipelineAt = emptiedPipelines()
const START = '2026-03-02T09:00:30Z'
const SERVICE: Caller = { ...CALLER, subject: 'service:importer' }

function schedulerOf({ db, clock, targets }: Pipeline, options: SchedulerOptions = {}): Scheduler {
  return new Scheduler({ db, clock, targets }, options)
}

/** Inserts schedules by SQL, without any limit. */
async function fill(
  { db }: Pipeline,
  count: number,
  { state = 'active', owner = 'service:importer' } = {},
): Promise<void> {
  const slot = state === 'active' ? sql`timestamptz '2099-01-01'` : sql`null::timestamptz`
  const [pausedAt, deletedAt] = [state === 'paused', state === 'deleted'].map((is) =>
    is ? sql`now()` : sql`null::timestamptz`,
  )
  await sql`
    with ids as (
      select gen_random_uuid() as id from generate_series(1, ${count}::int)
    ), grants as (
      insert into carillon.execution_grants (id, tenant_id, project_id, subject, scopes, created_by_subject, created_at)
      select id, 'acme', 'web', ${owner}, '{test:dispatch:*}', ${owner}, now() from ids
    )
    insert into carillon.schedules (
      id, tenant_id, project_id, owner_subject, target_kind, state, revision, grant_id, next_slot_at, due_at,
      auto_pause_threshold, created_by_subject, created_at, paused_at, paused_reason, deleted_at
    )
    select id, 'acme', 'web', ${owner}, 'test', ${state}::carillon.schedule_state, 1, id, ${slot}, ${slot}, 10, ${owner},
      now(), ${pausedAt}, 'full', ${deletedAt}
    from ids`.execute(db)
}

async function outcomes(creates: readonly Promise<unknown>[]): Promise<Record<string, number>> {
  const settled = await Promise.allSettled(creates)
  const names = settled.map((one) =>
    one.status === 'fulfilled' ? 'made' : String((one.reason as { code?: unknown }).code),
  )
  return Object.fromEntries(
    Map.groupBy(names, (name) => name)
      .entries()
      .map(([name, all]) => [name, all.length]),
  )
}

async function countLive(pipeline: Pipeline): Promise<number | undefined> {
  return (await countRows(pipeline))['carillon.schedules']
}

test('by default a project may have 500 schedules and each of its users 50, and the error names the limit', async () => {
  const pipeline = await pipelineAt(START)
  const scheduler = schedulerOf(pipeline)
  await fill(pipeline, 50, { owner: CALLER.subject })
  const before = await countRows(pipeline)

  await expect(scheduler.create(CALLER, EVERY_MINUTE)).rejects.toMatchObject({
    code: 'quota_exceeded',
    message:
      'expected at most 50 schedules of one user in this project, got more: delete some, or have the limit raised',
  })
  expect(await countRows(pipeline)).toEqual(before)

  await scheduler.create({ ...CALLER, subject: 'user:bob' }, EVERY_MINUTE)
  await fill(pipeline, 449)
  await expect(scheduler.create(SERVICE, EVERY_MINUTE)).rejects.toMatchObject({
    code: 'quota_exceeded',
    message: 'expected at most 500 schedules in this project, got more: delete some, or have the limit raised',
  })
})

test.each([
  ['of a project', { maxSchedulesPerProject: 500 }, SERVICE, 499],
  ['of a user', { maxSchedulesPerUser: 50 }, CALLER, 49],
  ['of a project with room for one', { maxSchedulesPerProject: 1 }, SERVICE, 0],
])('of 50 parallel creates, one short of the limit %s, exactly one succeeds', async (_whose, limits, caller, full) => {
  const pipeline = await pipelineAt(START)
  const scheduler = schedulerOf(pipeline, limits)
  if (full > 0) await fill(pipeline, full, { owner: caller.subject })

  const made = await outcomes(Array.from({ length: 50 }, () => scheduler.create(caller, EVERY_MINUTE)))

  expect(made).toEqual({ made: 1, quota_exceeded: 49 })
  expect(await countLive(pipeline)).toBe(full + 1)
})

test('parallel creates that start far below the limit stop exactly at it', async () => {
  const pipeline = await pipelineAt(START)
  const scheduler = schedulerOf(pipeline, { maxSchedulesPerProject: 120, maxSchedulesPerUser: null })

  const made = await outcomes(Array.from({ length: 160 }, () => scheduler.create(SERVICE, EVERY_MINUTE)))

  expect(made).toEqual({ made: 120, quota_exceeded: 40 })
  expect(await countLive(pipeline)).toBe(120)
})

test('a default isolation level of repeatable read does not let 40 parallel creates exceed a limit of 5', async () => {
  const pipeline = await pipelineAt(START)
  await sql
    .raw(`alter database ${pipeline.database.name} set default_transaction_isolation = 'repeatable read'`)
    .execute(pipeline.db)
  const pool = createPool({ connectionString: pipeline.database.url })
  const { clock, targets } = pipeline
  const scheduler = new Scheduler({ db: createDb(pool), clock, targets }, { maxSchedulesPerProject: 5 })

  const made = await outcomes(Array.from({ length: 40 }, () => scheduler.create(SERVICE, EVERY_MINUTE)))

  await sql.raw(`alter database ${pipeline.database.name} reset default_transaction_isolation`).execute(pipeline.db)
  await pool.end()
  expect(made).toEqual({ made: 5, quota_exceeded: 35 })
})

test('deleted and completed schedules do not count against the limit; paused ones do', async () => {
  const pipeline = await pipelineAt(START)
  const scheduler = schedulerOf(pipeline, { maxSchedulesPerProject: 2 })
  await fill(pipeline, 5, { state: 'deleted' })
  await fill(pipeline, 5, { state: 'completed' })
  await fill(pipeline, 1, { state: 'paused' })

  const last = await scheduler.create(CALLER, EVERY_MINUTE)
  await expect(scheduler.create(CALLER, EVERY_MINUTE)).rejects.toMatchObject({ code: 'quota_exceeded' })
  await scheduler.delete(CALLER, last.id)
  await scheduler.create(CALLER, EVERY_MINUTE)
})

test('a completed schedule that an edit makes active counts again, and the edit fails without room in the quota', async () => {
  const pipeline = await pipelineAt(START)
  const scheduler = schedulerOf(pipeline, { maxSchedulesPerProject: 1 })
  const once = await scheduler.create(CALLER, {
    ...EVERY_MINUTE,
    cadence: { kind: 'once', at: '2026-03-02T09:01:00Z' },
  })
  pipeline.clock.advance(60_000)
  await pipeline.worker().runDue()
  await scheduler.create(CALLER, EVERY_MINUTE)

  const edit = scheduler.edit(CALLER, once.id, { cadence: EVERY_MINUTE.cadence }, { revision: 1 })

  await expect(edit).rejects.toMatchObject({ code: 'quota_exceeded' })
  expect(await scheduler.get(CALLER, once.id)).toMatchObject({ state: 'completed', revision: 1 })
})

test('limits of a tenant, higher or lower, apply to that tenant only', async () => {
  const pipeline = await pipelineAt(START)
  const scheduler = schedulerOf(pipeline, { maxSchedulesPerProject: 2 })
  await sql`
    insert into carillon.tenants (tenant_id, max_schedules_per_project, minimum_seconds, updated_by_subject, updated_at)
    values ('acme', 3, 10, 'service:installation', now()), ('tiny', 1, 3600, 'service:installation', now())`.execute(
    pipeline.db,
  )
  const create = (tenantId: string, cadence: object = EVERY_MINUTE.cadence) =>
    scheduler.create({ ...CALLER, tenantId }, { ...EVERY_MINUTE, cadence })
  const every = (seconds: number) => ({ kind: 'interval', every: `PT${seconds}S`, startAt: '2026-03-02T10:00:00Z' })

  for (let count = 0; count < 3; count += 1) await create('acme', every(10))
  await expect(create('acme')).rejects.toMatchObject({ code: 'quota_exceeded' })
  await expect(create('tiny')).rejects.toMatchObject({ problems: [{ path: 'cadence.expression' }] })
  await create('tiny', every(3600))
  await expect(create('tiny', every(3600))).rejects.toMatchObject({ code: 'quota_exceeded' })
  await expect(create('others', every(59))).rejects.toMatchObject({ code: 'invalid_input' })
  await create('others')
  await create('others')
  await expect(create('others')).rejects.toMatchObject({ code: 'quota_exceeded' })
})

test('another project of the same tenant has its own count', async () => {
  const pipeline = await pipelineAt(START)
  const scheduler = schedulerOf(pipeline, { maxSchedulesPerProject: 1 })
  await scheduler.create(CALLER, EVERY_MINUTE)

  await scheduler.create({ ...CALLER, projectId: 'mobile' }, EVERY_MINUTE)
})
