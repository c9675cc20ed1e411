import { expect, test } from 'vitest'

import { emptiedPipelines } from '../emptied-pipeline.ts'
import { CALLER, EVERY_MINUTE, MINUTE, type Pipeline } from '../pipeline.ts'
import { sql } from '../sql.ts'

const pipelineAt = emptiedPipelines()
const START = '2026-03-02T09:00:30Z'

/** The schedules that count against a limit, by the table of live schedules and by their own rows. */
async function counted({ db }: Pipeline): Promise<{ kept: string[]; live: string[] }> {
  const kept = await sql<{ id: string }>`select schedule_id as id from carillon.live_schedules order by 1`.execute(db)
  const live = await sql<{ id: string }>`
    select id from carillon.schedules where state in ('active', 'paused') order by 1`.execute(db)
  return { kept: kept.rows.map(({ id }) => id), live: live.rows.map(({ id }) => id) }
}

test('a schedule counts while it is active or paused, however its state changes', async () => {
  const pipeline = await pipelineAt(START)
  const { scheduler, clock } = pipeline
  const once = { ...EVERY_MINUTE, cadence: { kind: 'once', at: '2026-03-02T09:01:00Z' } } as const
  const [paused, deleted, completed] = [
    await scheduler.create(CALLER, EVERY_MINUTE),
    await scheduler.create(CALLER, EVERY_MINUTE),
    await scheduler.create(CALLER, once),
  ]
  await scheduler.pause(CALLER, paused.id, { reason: 'holidays' })
  await scheduler.delete(CALLER, deleted.id)
  const both = [paused.id, completed.id].toSorted()
  expect(await counted(pipeline)).toEqual({ kept: both, live: both })

  // Its only slot begins, so the worker completes the schedule.
  clock.advance(MINUTE)
  await pipeline.worker().runDue()

  expect(await counted(pipeline)).toEqual({ kept: [paused.id], live: [paused.id] })
})

test('schedules whose rows are deleted do not count', async () => {
  const pipeline = await pipelineAt(START)
  const { id } = await pipeline.scheduler.create(CALLER, EVERY_MINUTE)
  await sql`delete from carillon.schedule_changes where schedule_id = ${id}`.execute(pipeline.db)
  await sql`delete from carillon.schedule_revisions where schedule_id = ${id}`.execute(pipeline.db)

  await sql`delete from carillon.schedules where id = ${id}`.execute(pipeline.db)

  expect(await counted(pipeline)).toEqual({ kept: [], live: [] })
})

test('a schedule is in the lane of its target kind and tenant, even after an edit of its kind', async () => {
  const pipeline = await pipelineAt(START)
  const { id } = await pipeline.scheduler.create(CALLER, EVERY_MINUTE)
  const laneIsRight = async (): Promise<unknown> =>
    (
      await sql<{ is_right: boolean }>`
        select lane = target_kind || '.' || (hashtext(tenant_id) & 63) as is_right
        from carillon.schedules where id = ${id}`.execute(pipeline.db)
    ).rows[0]?.is_right
  expect(await laneIsRight()).toBe(true)

  await sql`update carillon.schedules set target_kind = 'other' where id = ${id}`.execute(pipeline.db)

  expect(await laneIsRight()).toBe(true)
})
