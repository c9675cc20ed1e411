import { expect, test } from 'vitest'

import { createDb } from '../../src/db/database.ts'
import { migrate } from '../../src/db/migrate.ts'
import { dropPartitions, listPartitions } from '../../src/db/months.ts'
import { Scheduler } from '../../src/scheduler.ts'
import { createDatabase } from '../database.ts'
import { CALLER, DAY, EVERY_MINUTE, MINUTE, Pipeline } from '../pipeline.ts'
import { ScriptedTarget } from '../scripted-target.ts'
import { sql } from '../sql.ts'

const START = '2026-03-02T09:00:30Z'
const IN_MADRID = { kind: 'cron', expression: '* * * * *', timezone: 'Europe/Madrid' }

/** A pipeline without a month of this year, as if upkeep had not run for long. */
async function withoutMonths(): Promise<Pipeline> {
  const pipeline = await Pipeline.at(START)
  await dropPartitions(pipeline.workerDb, { before: new Date('2027-01-01T00:00:00Z') })
  return pipeline
}

test('a manual run can be requested as soon as the database is migrated, before any worker has started (I6)', async () => {
  await using database = await createDatabase({ content: 'empty' })
  await migrate(database.pool)
  const target = new ScriptedTarget()
  const db = createDb(database.pool)
  const scheduler = new Scheduler({ db, targets: new Map([[target.kind, target]]) })
  const tables = ['runs', 'attempts', 'transcripts']
  expect((await listPartitions(db)).map(({ table }) => table)).toEqual([...tables, ...tables])

  const { id } = await scheduler.create(CALLER, EVERY_MINUTE)

  expect(await scheduler.runNow(CALLER, id)).toMatchObject({ state: 'pending', trigger: 'manual' })
})

test.each([
  { change: 'a pause', lines: ['09:01 skipped paused'], make: pause },
  { change: 'an edit', lines: ['09:01 skipped superseded'], make: edit },
  { change: 'a deletion', lines: ['09:01 skipped superseded'], make: remove },
  { change: 'a deletion of the project', lines: ['09:01 skipped superseded'], make: removeAll },
  { change: 'a manual run', lines: ['09:01 pending'], make: runNow },
])('$change creates the month that its line needs, and then succeeds as a whole (I6)', async ({ make, lines }) => {
  await using pipeline = await withoutMonths()
  const { id } = await pipeline.create()
  pipeline.clock.advance(MINUTE)

  await make(pipeline, id)

  expect(await linesOf(pipeline)).toEqual(lines)
})

test('a pause of a schedule that no worker ran for most of a year writes a line for each of its slots (I6)', async () => {
  await using pipeline = await withoutMonths()
  const { db, clock, targets } = pipeline
  const scheduler = new Scheduler({ db, clock, targets }, { retentionDays: 365 })
  const { id } = await pipeline.create({ cadence: { ...EVERY_MINUTE.cadence, expression: '0 * * * *' } })
  clock.advance(300 * DAY)

  await scheduler.pause(CALLER, id, { reason: 'holiday' })

  expect(await linesOf(pipeline)).toHaveLength(300 * 24)
})

test('begin creates the month of a slot if upkeep has not created it (I6)', async () => {
  await using pipeline = await withoutMonths()
  const schedule = await pipeline.create()
  pipeline.clock.advance(MINUTE)

  await pipeline.worker().runDue()

  expect(await pipeline.lines(schedule)).toEqual(['09:01 succeeded'])
})

test('a line that a check rejects is not mistaken for one whose month is missing', async () => {
  await using pipeline = await Pipeline.at(START)
  const { id } = await pipeline.create()
  await sql`alter table carillon.runs add constraint none check (trigger <> 'manual')`.execute(pipeline.db)

  await expect(runNow(pipeline, id)).rejects.toMatchObject({ code: '23514', constraint: 'none' })
})

function pause({ scheduler }: Pipeline, id: string): Promise<unknown> {
  return scheduler.pause(CALLER, id, { reason: 'holiday' })
}

function edit({ scheduler }: Pipeline, id: string): Promise<unknown> {
  return scheduler.edit(CALLER, id, { cadence: IN_MADRID }, { revision: 1 })
}

function remove({ scheduler }: Pipeline, id: string): Promise<unknown> {
  return scheduler.delete(CALLER, id)
}

function removeAll({ scheduler }: Pipeline): Promise<unknown> {
  return scheduler.deleteProject(CALLER)
}

function runNow({ scheduler }: Pipeline, id: string): Promise<unknown> {
  return scheduler.runNow(CALLER, id)
}

/** The lines of all schedules. It reads the table itself, because users cannot read the runs of a deleted schedule. */
async function linesOf({ db }: Pipeline): Promise<string[]> {
  const { rows } = await sql<{ line: string }>`
    select concat_ws(' ', to_char(scheduled_for at time zone 'UTC', 'HH24:MI'), state, reason) as line
    from carillon.runs order by scheduled_for`.execute(db)
  return rows.map(({ line }) => line)
}
