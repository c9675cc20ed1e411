import { expect, test } from 'vitest'

import type { Tx } from '../../src/db/database.ts'
import { readCurrentTime, readTransactionTime } from '../../src/db/now.ts'
import { transact } from '../../src/db/transact.ts'
import { systemClock } from '../../src/kernel/clock.ts'
import { emptiedPipelines } from '../emptied-pipeline.ts'
import { CALLER, MINUTE, type Pipeline } from '../pipeline.ts'
import { held } from '../scripted-target.ts'
import { sql } from '../sql.ts'

const pipelineAt = emptiedPipelines()
const JUST_BEFORE = '2026-03-02T09:00:59.990Z'
const SLOT = Date.parse('2026-03-02T09:01:00Z')
const IN_MADRID = { kind: 'cron', expression: '* * * * *', timezone: 'Europe/Madrid' }

/** Writes what the begin of another worker writes for the slot of 09:01. */
async function beginElsewhere(tx: Tx, { id }: { id: string }): Promise<void> {
  await sql`
    with worker as (
      insert into carillon.workers (id, name, target_kinds, started_at, heartbeat_at, lease_expires_at)
      values (gen_random_uuid(), 'another', '{test}', '2026-03-02', '2026-03-02', '2027-01-01')
      returning id
    )
    insert into carillon.runs (
      schedule_id, scheduled_for, id, tenant_id, project_id, revision, trigger, state, attempt_count, token, worker_id,
      begun_at, started_at
    )
    select schedules.id, next_slot_at, gen_random_uuid(), tenant_id, project_id, revision, 'schedule', 'running', 1, 1,
      worker.id, next_slot_at, next_slot_at
    from carillon.schedules, worker where schedules.id = ${id}`.execute(tx)
  await sql`
    update carillon.schedules
    set next_slot_at = next_slot_at + interval '1 minute', due_at = due_at + interval '1 minute',
      run_count = run_count + 1
    where id = ${id}`.execute(tx)
}

/** Resolves once a statement waits for a lock. */
async function whenBlocked({ db }: Pipeline): Promise<void> {
  for (;;) {
    const { rows } = await sql`
      select from pg_stat_activity where wait_event_type = 'Lock' and datname = current_database()`.execute(db)
    if (rows.length > 0) return
  }
}

async function nextSlotOf({ scheduler }: Pipeline, { id }: { id: string }): Promise<number | null> {
  return (await scheduler.get(CALLER, id)).nextSlotAt
}

test('an edit that waited for a begin does not make the slot that was begun due again (I2, I5)', async () => {
  const pipeline = await pipelineAt(JUST_BEFORE)
  const worker = pipeline.worker()
  const schedule = await pipeline.create({ policy: { overlap: 'replace' } })

  let edit: Promise<unknown> | undefined
  await transact(pipeline.db, systemClock, async (tx) => {
    await sql`select from carillon.schedules for update`.execute(tx)
    edit = pipeline.scheduler.edit(CALLER, schedule.id, { cadence: IN_MADRID }, { revision: 1 })
    await whenBlocked(pipeline)
    pipeline.clock.advance(10)
    await beginElsewhere(tx, schedule)
  })
  await edit
  expect(await nextSlotOf(pipeline, schedule)).toBe(SLOT + MINUTE)

  await worker.runDue()
  expect(await pipeline.ledger(schedule)).toMatchObject([{ state: 'running', cancelRequestedAt: null }])
})

test('a change uses the instant at which it got its lock, not that at which its transaction began (I10)', async () => {
  const { db } = await pipelineAt(JUST_BEFORE)

  const [startedAt, readAt] = await transact(db, systemClock, async (tx) => {
    const started = await readTransactionTime(tx, null)
    for (let tries = 0; tries < 1000 && (await readCurrentTime(tx, null)) === started; tries += 1);
    return [started, await readCurrentTime(tx, null)]
  })

  expect(readAt).toBeGreaterThan(startedAt)
})

test('a slot that has a line already neither cancels the running run nor counts as a run (I2, I5)', async () => {
  const pipeline = await pipelineAt(JUST_BEFORE)
  const worker = pipeline.worker()
  const schedule = await pipeline.create({ policy: { overlap: 'replace' } })
  const other = await pipeline.create()
  pipeline.target.script = held().script
  pipeline.clock.advance(10)
  await worker.startDue()
  await pipeline.target.whenCalled(2)

  // Sets the next slot back by hand, to the slot whose run is under way.
  await sql`
    update carillon.schedules set next_slot_at = ${new Date(SLOT)}, due_at = ${new Date(SLOT)}
    where id = ${schedule.id}`.execute(pipeline.db)
  // The slot now lies before the loop's position in the lane. The loop looks at whole lanes when it is woken, or once a second.
  worker.loop.wake()
  await worker.startDue()

  const [run] = await pipeline.ledger(schedule)
  expect(run).toMatchObject({ state: 'running', cancelRequestedAt: null })
  expect(await pipeline.scheduler.get(CALLER, schedule.id)).toMatchObject({ runCount: 1, nextSlotAt: SLOT + MINUTE })
  expect(await pipeline.lines(other)).toEqual(['09:01 running'])
})
