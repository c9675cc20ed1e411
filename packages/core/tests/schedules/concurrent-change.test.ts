import { expect, test } from 'vitest'

import type { Tx } from '../../src/db/database.ts'
import { transact } from '../../src/db/transact.ts'
import { systemClock } from '../../src/kernel/clock.ts'
import { emptiedPipelines } from '../emptied-pipeline.ts'
import { CALLER, MINUTE, type Pipeline } from '../pipeline.ts'
import { sql } from '../sql.ts'

const pipelineAt = emptiedPipelines()
const START = '2026-03-02T09:00:30Z'

/** Edits a schedule as another process would, up to the point before the commit. */
async function editHalfWay(tx: Tx, { id }: { id: string }): Promise<void> {
  await sql`update carillon.schedules set revision = 2 where id = ${id}`.execute(tx)
  await sql`
    insert into carillon.schedule_revisions
    select (jsonb_populate_record(revisions, '{"revision": 2}')).*
    from carillon.schedule_revisions as revisions where schedule_id = ${id}`.execute(tx)
}

/** Resolves once a statement waits for a lock. */
async function whenBlocked({ db }: Pipeline): Promise<void> {
  for (;;) {
    const { rows } = await sql`
      select from pg_stat_activity where wait_event_type = 'Lock' and datname = current_database()`.execute(db)
    if (rows.length > 0) return
  }
}

/** Makes a call while an edit is not committed, and returns its result after the commit. */
async function callDuringEdit<Result>(
  pipeline: Pipeline,
  schedule: { id: string },
  call: () => Promise<Result>,
): Promise<Result> {
  let called: Promise<Result> | undefined
  await transact(pipeline.db, systemClock, async (tx) => {
    await editHalfWay(tx, schedule)
    called = call()
    called.catch(() => undefined)
    await whenBlocked(pipeline)
  })
  return called as Promise<Result>
}

test('an edit that waited for another edit fails with a revision conflict, not with a missing schedule', async () => {
  const pipeline = await pipelineAt(START)
  const schedule = await pipeline.create()

  const edited = callDuringEdit(pipeline, schedule, () =>
    pipeline.scheduler.edit(CALLER, schedule.id, { name: 'late' }, { revision: 1 }),
  )

  await expect(edited).rejects.toMatchObject({ code: 'revision_conflict' })
  expect(await pipeline.scheduler.get(CALLER, schedule.id)).toMatchObject({ revision: 2, name: 'every minute' })
})

test('a manual run that waited for an edit runs the new revision (I5)', async () => {
  const pipeline = await pipelineAt(START)
  const schedule = await pipeline.create()

  const run = await callDuringEdit(pipeline, schedule, () => pipeline.scheduler.runNow(CALLER, schedule.id))

  expect(run).toMatchObject({ state: 'pending', revision: 2 })
})

test('a project that is deleted during an edit of one of its schedules is deleted completely', async () => {
  const pipeline = await pipelineAt(START)
  const schedule = await pipeline.create()
  await pipeline.create()

  const deleted = await callDuringEdit(pipeline, schedule, () => pipeline.scheduler.deleteProject(CALLER))

  expect(deleted).toEqual({ deleted: 2 })
  expect(await pipeline.scheduler.list(CALLER)).toEqual([])
})

test('a worker skips a schedule that a transaction has locked, and claims it after the commit', async () => {
  const pipeline = await pipelineAt(START)
  const worker = pipeline.worker()
  const schedule = await pipeline.create()
  pipeline.clock.advance(MINUTE / 2)

  await transact(pipeline.db, systemClock, async (tx) => {
    await editHalfWay(tx, schedule)
    await worker.runDue()
    expect(pipeline.target.calls).toEqual([])
  })
  await worker.runDue()

  expect(await pipeline.ledger(schedule)).toMatchObject([{ state: 'succeeded', revision: 2 }])
})
