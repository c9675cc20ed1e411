import pg from 'pg'
import { expect, test } from 'vitest'

import { whenBlocked } from '../blocked-statement.ts'
import { MINUTE, Pipeline } from '../pipeline.ts'
import { FAIL_FOR_GOOD, SUCCEEDED } from '../scripted-target.ts'

/**
 * Another transaction locks the schedule, as an edit does, while the run is settled. Settling must wait for the schedule before it
 * locks the run: a transaction that then updates the run would otherwise wait for settling, which waits for it.
 */
test.each([
  ['a success that needs no lock and resets failures', SUCCEEDED],
  ['a failure', FAIL_FOR_GOOD],
])('settling %s locks the schedule before the run', async (_, outcome) => {
  await using pipeline = await Pipeline.at('2026-03-02T09:00:30Z')
  const { database, target, clock } = pipeline
  const worker = pipeline.worker()
  const schedule = await pipeline.create({ policy: { autoPauseThreshold: 10 } })
  await database.pool.query('update carillon.schedules set consecutive_failures = 1 where id = $1', [schedule.id])
  const answer = Promise.withResolvers<void>()
  target.script = async () => {
    await answer.promise
    return outcome
  }
  clock.advance(MINUTE / 2)
  await worker.startDue()
  await target.whenCalled(1)
  const other = new pg.Client({ connectionString: database.url })
  await other.connect()
  try {
    await other.query('begin')
    await other.query('select from carillon.schedules where id = $1 for update', [schedule.id])
    const settled = worker.whenSettled()
    answer.resolve()
    await whenBlocked(pipeline)

    const locked = await other.query('select from carillon.runs where schedule_id = $1 for update skip locked', [
      schedule.id,
    ])
    await other.query('commit')
    await settled

    expect(locked.rowCount).toBe(1)
  } finally {
    await other.end()
  }
})
