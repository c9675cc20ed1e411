import { expect, onTestFinished, test } from 'vitest'

import { createDb } from '../../src/db/database.ts'
import { createPool } from '../../src/db/pool.ts'
import { transactScoped } from '../../src/db/transact.ts'
import { listChanges } from '../../src/ledger/store/runs.ts'
import { emptiedPipelines } from '../emptied-pipeline.ts'
import { holdRun } from '../held-run.ts'
import { CALLER, MINUTE, type Pipeline } from '../pipeline.ts'
import { countRowsReadIn } from '../rows-read.ts'
import { FAIL, SUCCEEDED } from '../scripted-target.ts'
import { sql } from '../sql.ts'

const pipelineAt = emptiedPipelines()
const START = '2026-03-02T09:00:30Z'
const NOW = Date.parse(START)
const BOB = { ...CALLER, subject: 'user:bob' }

/** The changes of a schedule after its creation: those of a deleted schedule too, which users cannot read. */
async function changesOf({ db }: Pipeline, { id }: { readonly id: string }): Promise<string[]> {
  const { rows } = await sql<{ line: string }>`
    select concat_ws(' ', change, 'by', actor_subject, to_char(scheduled_for at time zone 'UTC', 'HH24:MI:SS')) as line
    from carillon.schedule_changes
    where schedule_id = ${id} and change <> 'created'
    order by id`.execute(db)
  return rows.map(({ line }) => line)
}

test('the history says who requested a run, when, and for which slot; the next slot stays the same', async () => {
  const pipeline = await pipelineAt(START)
  const schedule = await pipeline.create()
  pipeline.clock.advance(1000)

  const run = await pipeline.scheduler.runNow(BOB, schedule.id)

  const [requested, created, ...more] = await pipeline.scheduler.history(CALLER, schedule.id)
  expect(created).toMatchObject({ change: 'created', scheduledFor: null })
  expect(requested).toEqual({
    id: expect.any(Number) as number,
    change: 'run_requested',
    revision: 1,
    nextSlotAt: schedule.nextSlotAt,
    scheduledFor: run.scheduledFor,
    actor: 'user:bob',
    reason: null,
    changedAt: NOW + 1000,
  })
  expect(more).toEqual([])
})

test('a run-now that is refused writes no line into the history', async () => {
  const { pipeline, schedule } = await holdRun(await pipelineAt(START), { overlap: 'forbid' })

  await expect(pipeline.scheduler.runNow(CALLER, schedule.id)).rejects.toMatchObject({ code: 'overlap' })

  expect(await changesOf(pipeline, schedule)).toEqual([])
})

test('the history says who cancelled a run that waited, and for which slot', async () => {
  const { pipeline, schedule, answer } = await holdRun(await pipelineAt(START), { overlap: 'forbid' })
  await answer(0, FAIL)
  const [retrying] = await pipeline.ledger(schedule)

  await pipeline.scheduler.cancel(BOB, retrying?.id ?? '')

  expect((await pipeline.scheduler.history(CALLER, schedule.id)).slice(0, -1)).toEqual([
    {
      id: expect.any(Number) as number,
      change: 'run_cancelled',
      revision: 1,
      nextSlotAt: NOW + 1.5 * MINUTE,
      scheduledFor: NOW + 0.5 * MINUTE,
      actor: 'user:bob',
      reason: null,
      changedAt: pipeline.clock.instant,
    },
  ])
})

test('a second cancel of a running run changes nothing, so the history names only the caller of the first', async () => {
  const { pipeline, schedule } = await holdRun(await pipelineAt(START), { overlap: 'forbid' })
  const [running] = await pipeline.ledger(schedule)

  await pipeline.scheduler.cancel(BOB, running?.id ?? '')
  await pipeline.scheduler.cancel(CALLER, running?.id ?? '')

  expect(await changesOf(pipeline, schedule)).toEqual(['run_cancelled by user:bob 09:01:00'])
})

test('a cancel of a run that has ended is refused and writes no line into the history', async () => {
  const { pipeline, schedule, answer } = await holdRun(await pipelineAt(START), { overlap: 'forbid' })
  await answer(0, SUCCEEDED)
  const [ended] = await pipeline.ledger(schedule)

  await expect(pipeline.scheduler.cancel(BOB, ended?.id ?? '')).rejects.toMatchObject({ code: 'state_conflict' })

  expect(await changesOf(pipeline, schedule)).toEqual([])
})

test('a run that a newer slot replaces is not in the history, because no caller cancelled it', async () => {
  const { pipeline, schedule, nextSlot } = await holdRun(await pipelineAt(START), { overlap: 'replace' })

  await nextSlot()

  expect(await changesOf(pipeline, schedule)).toEqual([])
})

test('a cancel of a running run whose schedule was deleted is in the history too', async () => {
  const { pipeline, schedule } = await holdRun(await pipelineAt(START), { overlap: 'forbid' })
  const [running] = await pipeline.ledger(schedule)
  await pipeline.scheduler.delete(CALLER, schedule.id)

  await pipeline.scheduler.cancel(BOB, running?.id ?? '')

  expect(await changesOf(pipeline, schedule)).toEqual(['deleted by user:alice', 'run_cancelled by user:bob 09:01:00'])
})

test('a run-now, a cancel and their lines in the history are one transaction each: without the line nothing is changed', async () => {
  const pipeline = await pipelineAt(START)
  const schedule = await pipeline.create()
  const waiting = await pipeline.scheduler.runNow(CALLER, schedule.id)
  const other = await pipeline.create()
  await sql`alter table carillon.schedule_changes rename to hidden`.execute(pipeline.db)
  // The other tests of this file use the same database, whether this test fails or not.
  onTestFinished(async () => {
    await sql`alter table carillon.hidden rename to schedule_changes`.execute(pipeline.db)
  })

  const [requested, cancelled] = await Promise.allSettled([
    pipeline.scheduler.runNow(CALLER, other.id),
    pipeline.scheduler.cancel(CALLER, waiting.id),
  ])

  const failed = { status: 'rejected', reason: { message: expect.stringContaining('schedule_changes') as string } }
  expect([requested, cancelled]).toMatchObject([failed, failed])
  expect(await pipeline.ledger(other)).toEqual([])
  expect(await pipeline.ledger(schedule)).toMatchObject([{ state: 'pending' }])
})

test('the history is read in pages, the latest change first, each line once, while callers request runs', async () => {
  const pipeline = await pipelineAt(START)
  const { id } = await pipeline.create()
  const addEdits = (from: number, to: number) =>
    sql`
      insert into carillon.schedule_changes (
        schedule_id, tenant_id, project_id, change, revision, next_slot_at, actor_subject, reason, changed_at
      )
      select schedule_id, tenant_id, project_id, 'edited', number, next_slot_at, actor_subject, null, changed_at
      from carillon.schedule_changes, generate_series(${from}::integer, ${to}::integer) as number
      where schedule_id = ${id} and change = 'created'`.execute(pipeline.db)
  await addEdits(2, 1001)

  const revisions: number[] = []
  for (let before: number | undefined; ;) {
    const page = await pipeline.scheduler.history(CALLER, id, { limit: 200, ...(before && { before }) })
    revisions.push(...page.map(({ revision }) => revision))
    before = page.at(-1)?.id
    if (page.length < 200) break
    await addEdits(2000, 2001)
  }

  expect(revisions).toEqual(Array.from({ length: 1001 }, (_, index) => 1001 - index))
})

test.each([{ before: 0 }, { before: 1.5 }, { before: '1' }, { limit: 201 }, { limit: 0 }, { after: 1 }])(
  'a history is not read with %j',
  async (options) => {
    const pipeline = await pipelineAt(START)
    const { id } = await pipeline.create()

    const read = pipeline.scheduler.history(CALLER, id, options as never)

    await expect(read).rejects.toMatchObject({ code: 'invalid_input' })
  },
)

test('a page of a long history reads its own rows only', async () => {
  const pipeline = await pipelineAt(START)
  const { db: admin, database } = pipeline
  const { id } = await pipeline.create()
  await pipeline.create()
  await sql`
    insert into carillon.schedule_changes (schedule_id, tenant_id, project_id, change, revision, actor_subject, changed_at)
    select schedule_id, tenant_id, project_id, 'edited', number, actor_subject, changed_at
    from carillon.schedule_changes, generate_series(1, 10000) as number`.execute(admin)
  await sql`analyze carillon.schedule_changes`.execute(admin)
  const db = createDb(createPool({ connectionString: database.url, isPrepared: true, maxConnections: 1 }))
  onTestFinished(() => db.close())
  const [, last] = await pipeline.scheduler.history(CALLER, id, { limit: 2 })
  const scope = { tenantId: CALLER.tenantId, projectId: CALLER.projectId }
  const page = { ...scope, scheduleId: id, before: last?.id ?? 0, limit: 50 }

  const read = await transactScoped(db, pipeline.clock, scope, (tx) =>
    countRowsReadIn(tx, 'schedule_changes', async () => expect(await listChanges(tx, page)).toHaveLength(50)),
  )

  expect(read).toBe(50)
})
