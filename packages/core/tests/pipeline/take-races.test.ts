import pg from 'pg'
import { expect, test } from 'vitest'

import { createDb } from '../../src/db/database.ts'
import { createPool } from '../../src/db/pool.ts'
import { transact } from '../../src/db/transact.ts'
import { whenBlocked } from '../blocked-statement.ts'
import { emptiedPipelines } from '../emptied-pipeline.ts'
import { CALLER, MINUTE, Pipeline } from '../pipeline.ts'
import { FAIL, held } from '../scripted-target.ts'
import { takeAs } from '../waits.ts'

const pipelineAt = emptiedPipelines()
const START = '2026-03-02T09:00:30Z'
const NEVER = { kind: 'once', at: '2099-01-01T00:00:00Z' }
const GATE = 4711

/** Makes statements of one application wait for an advisory lock when they read the workers, after they got their snapshot. */
const GATED = `
  create function public.gate() returns boolean language plpgsql as $$
  begin
    if current_setting('application_name') = 'gated' then
      perform pg_advisory_xact_lock_shared(${GATE});
    end if;
    return true;
  end
  $$;
  alter table carillon.workers enable row level security;
  create policy gate on carillon.workers using (public.gate())`

test('a take whose snapshot has a run that another take has taken since takes nothing (I12)', async () => {
  await using pipeline = await Pipeline.at(START)
  const { database, scheduler, clock } = pipeline
  const { id } = await pipeline.create({ cadence: NEVER })
  await scheduler.runNow(CALLER, id)
  const [first, second] = [pipeline.worker('first'), pipeline.worker('second')]
  for (const { heartbeat } of [first, second]) await heartbeat.runOnce()
  await database.pool.query(GATED)
  const gatedUrl = new URL(database.url)
  gatedUrl.searchParams.set('application_name', 'gated')
  const gated = createDb(createPool({ connectionString: gatedUrl.href, role: 'carillon_worker' }))
  const holder = new pg.Client({ connectionString: database.url })
  await holder.connect()
  await holder.query(`select pg_advisory_lock(${GATE})`)

  const late = takeAs({ workerDb: gated, clock }, second)
  await whenBlocked(pipeline)
  const early = await takeAs(pipeline, first)
  await holder.query(`select pg_advisory_unlock(${GATE})`)

  expect(early).toHaveLength(1)
  expect(await late).toEqual([])
  await holder.end()
  await gated.close()
})

test('a begin skips a schedule while a take of its run is not committed, and later finds the run under way (I2)', async () => {
  const pipeline = await pipelineAt(START)
  const { clock, target, workerDb } = pipeline
  const schedule = await pipeline.create({ policy: { retry: { baseSeconds: 60, capSeconds: 60 } } })
  const [first, second] = [pipeline.worker('first'), pipeline.worker('second')]
  target.script = () => FAIL
  clock.advance(MINUTE / 2)
  await first.runDue()
  target.script = held().script
  clock.advance(MINUTE)
  for (const { heartbeat } of [first, second]) await heartbeat.runOnce()

  await transact(workerDb, clock, async (tx) => {
    expect(await takeAs({ workerDb: tx, clock }, first)).toHaveLength(1)
    expect(await second.loop.runOnce()).toMatchObject({ begun: 0, skipped: 0, taken: 0 })
  })
  clock.advance(1000)
  await second.loop.runOnce()

  expect(await pipeline.lines(schedule)).toEqual(['09:01 running', '09:02 skipped overlap'])
})
