import { expect, test } from 'vitest'

import { countRows, emptiedPipelines } from '../emptied-pipeline.ts'
import { holdRun } from '../held-run.ts'
import { CALLER, EVERY_MINUTE, MINUTE, type Pipeline } from '../pipeline.ts'
import { FAIL, SUCCEEDED } from '../scripted-target.ts'
import { sql } from '../sql.ts'
import { listWaits } from '../waits.ts'

const pipelineAt = emptiedPipelines()
const START = '2026-03-02T09:00:30Z'
const NEIGHBOUR = { ...CALLER, projectId: 'mobile' }

/** The lines of a schedule, read from the table, because users cannot see those of a deleted schedule. */
async function hiddenLines({ db }: Pipeline, { id }: { id: string }): Promise<string[]> {
  const { rows } = await sql<{ line: string }>`
    select concat_ws(' ', to_char(scheduled_for at time zone 'UTC', 'HH24:MI'), state, reason) as line
    from carillon.runs where schedule_id = ${id} order by scheduled_for`.execute(db)
  return rows.map(({ line }) => line)
}

async function states({ db }: Pipeline): Promise<Record<string, number>> {
  const { rows } = await sql<{ state: string; count: number }>`
    select project_id || ' ' || state as state, count(*)::int as count from carillon.schedules group by 1`.execute(db)
  return Object.fromEntries(rows.map(({ state, count }) => [state, count]))
}

test('a deleted schedule is hidden and never runs again, but its rows stay, with the actor and the time', async () => {
  const pipeline = await pipelineAt(START)
  const schedule = await pipeline.create()
  pipeline.clock.advance(1000)

  await pipeline.scheduler.delete({ ...CALLER, subject: 'user:bob' }, schedule.id)
  pipeline.clock.advance(5 * MINUTE)
  await pipeline.worker().runDue()

  const gone = { code: 'schedule_not_found' }
  await expect(pipeline.scheduler.get(CALLER, schedule.id)).rejects.toMatchObject(gone)
  await expect(pipeline.scheduler.resume(CALLER, schedule.id)).rejects.toMatchObject(gone)
  await expect(pipeline.scheduler.delete(CALLER, schedule.id)).rejects.toMatchObject(gone)
  expect(await pipeline.scheduler.list(CALLER)).toEqual([])
  expect(pipeline.target.calls).toEqual([])
  const { rows } = await sql`
    select state::text, deleted_by_subject as by, deleted_at as at, next_slot_at as next from carillon.schedules
    union all
    select 'history ' || change, actor_subject, changed_at, next_slot_at from carillon.schedule_changes
    where change = 'deleted'`.execute(pipeline.db)
  const deletion = { by: 'user:bob', at: new Date(Date.parse(START) + 1000), next: null }
  expect(rows).toEqual([
    { state: 'deleted', ...deletion },
    { state: 'history deleted', ...deletion },
  ])
})

test('slots that are due when a schedule is deleted are skipped as superseded (I6)', async () => {
  const pipeline = await pipelineAt(START)
  const schedule = await pipeline.create()
  pipeline.clock.advance(2 * MINUTE)

  await pipeline.scheduler.delete(CALLER, schedule.id)

  expect(await hiddenLines(pipeline, schedule)).toEqual(['09:01 skipped superseded', '09:02 skipped superseded'])
})

test('a delete cancels waiting runs, and running ones end by themselves', async () => {
  const { pipeline, worker, schedule, answer, nextSlot } = await holdRun(await pipelineAt(START), { overlap: 'queue' })
  await nextSlot()

  await pipeline.scheduler.delete(CALLER, schedule.id)
  await answer(0, SUCCEEDED)
  await worker.rescuer.runOnce()
  await worker.startDue()

  expect(await hiddenLines(pipeline, schedule)).toEqual(['09:01 succeeded', '09:02 cancelled'])
  expect(pipeline.target.calls).toHaveLength(1)
  expect(await listWaits(pipeline)).toEqual([])
})

test('a delete cancels a run that waits for its retry and a manual run that has not started', async () => {
  const pipeline = await pipelineAt(START)
  const worker = pipeline.worker()
  const schedule = await pipeline.create({ policy: { overlap: 'allow' } })
  pipeline.target.script = () => FAIL
  pipeline.clock.advance(MINUTE / 2)
  await worker.runDue()
  await pipeline.scheduler.runNow(CALLER, schedule.id)
  expect(await listWaits(pipeline)).toMatchObject([{ waitsFor: 'worker' }, { waitsFor: 'retry' }])

  await pipeline.scheduler.delete(CALLER, schedule.id)
  pipeline.clock.advance(MINUTE)
  await worker.runDue()

  expect(await hiddenLines(pipeline, schedule)).toEqual(['09:00 cancelled', '09:01 cancelled'])
  expect(await listWaits(pipeline)).toEqual([])
  expect(pipeline.target.calls).toHaveLength(1)
})

test('a run that fails after its schedule was deleted is not retried', async () => {
  const { pipeline, schedule, answer } = await holdRun(await pipelineAt(START), { overlap: 'forbid' })

  await pipeline.scheduler.delete(CALLER, schedule.id)
  await answer(0, FAIL)

  expect(await hiddenLines(pipeline, schedule)).toEqual(['09:01 cancelled'])
  expect(await listWaits(pipeline)).toEqual([])
})

test('deleting a project deletes all its schedules and changes no other project', async () => {
  const pipeline = await pipelineAt(START)
  const worker = pipeline.worker()
  const { scheduler } = pipeline
  for (let each = 0; each < 3; each += 1) await pipeline.create({ name: `mine ${each}` })
  const theirs = await scheduler.create(NEIGHBOUR, EVERY_MINUTE)
  const emitted: string[] = []
  pipeline.events.on('schedule.deleted', ({ scheduleId }) => emitted.push(scheduleId))

  expect(await scheduler.deleteProject(CALLER)).toEqual({ deleted: 3 })
  expect(await scheduler.deleteProject(CALLER)).toEqual({ deleted: 0 })
  pipeline.clock.advance(MINUTE / 2)
  await worker.runDue()

  expect(await states(pipeline)).toEqual({ 'web deleted': 3, 'mobile active': 1 })
  expect(pipeline.target.calls.map(({ scheduleId }) => scheduleId)).toEqual([theirs.id])
  expect(emitted).toHaveLength(3)
})

test('deleting a project skips due slots and cancels waiting runs, whatever the states of its schedules (I6)', async () => {
  const pipeline = await pipelineAt(START)
  const worker = pipeline.worker()
  const { scheduler } = pipeline
  const retrying = await pipeline.create({ name: 'retrying', policy: { overlap: 'allow' } })
  pipeline.target.script = () => FAIL
  pipeline.clock.advance(MINUTE / 2)
  await worker.runDue()
  const paused = await pipeline.create({ name: 'paused' })
  await scheduler.pause(CALLER, paused.id, { reason: 'holidays' })
  const due = await pipeline.create({ name: 'due' })
  pipeline.clock.advance(MINUTE)

  await scheduler.deleteProject(CALLER)

  expect(await states(pipeline)).toEqual({ 'web deleted': 3 })
  expect(await hiddenLines(pipeline, retrying)).toEqual(['09:01 cancelled', '09:02 skipped superseded'])
  expect(await hiddenLines(pipeline, paused)).toEqual([])
  expect(await hiddenLines(pipeline, due)).toEqual(['09:02 skipped superseded'])
  expect(await listWaits(pipeline)).toEqual([])
})

test('a failure in the middle of deleting a project changes nothing', async () => {
  const pipeline = await pipelineAt(START)
  const { scheduler } = pipeline
  for (let each = 0; each < 3; each += 1) await pipeline.create({ name: `mine ${each}` })
  pipeline.clock.advance(MINUTE)
  const before = await countRows(pipeline)

  await sql`alter table carillon.schedule_changes rename to hidden`.execute(pipeline.db)
  await expect(scheduler.deleteProject(CALLER)).rejects.toThrow('schedule_changes')
  await sql`alter table carillon.hidden rename to schedule_changes`.execute(pipeline.db)

  expect(await states(pipeline)).toEqual({ 'web active': 3 })
  expect(await countRows(pipeline)).toEqual(before)
})

test('a schedule whose cadence can no longer be read can still be deleted, and so can its project (I6)', async () => {
  const pipeline = await pipelineAt(START)
  const poison = await pipeline.create()
  const other = await pipeline.create()
  await sql`
    update carillon.schedule_revisions set cadence_cron = '{"kind":"cron"}' where schedule_id = ${poison.id}`.execute(
    pipeline.db,
  )
  pipeline.clock.advance(2 * MINUTE)

  await pipeline.scheduler.deleteProject(CALLER)

  expect(await states(pipeline)).toEqual({ 'web deleted': 2 })
  expect(await hiddenLines(pipeline, poison)).toEqual(['09:01 skipped superseded'])
  expect(await hiddenLines(pipeline, other)).toHaveLength(2)
})
