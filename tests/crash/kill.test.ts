import type { IncomingHttpHeaders } from 'node:http'

import { expect, test } from 'vitest'

import { CALLER, CrashRig, killed } from './rig.ts'

function identityOf(headers: IncomingHttpHeaders): object {
  const { 'idempotency-key': key, 'carillon-schedule-id': scheduleId, 'carillon-scheduled-for': scheduledFor } = headers
  return { key, scheduleId, scheduledFor }
}

test.concurrent('if a worker is killed between begin and settle, another one finishes its run (I5, I12)', async () => {
  await using rig = await CrashRig.start('short')
  const doomed = await rig.worker('doomed')
  const schedule = await rig.create()
  const first = await rig.arrival(1)
  await rig.worker('other')
  await killed(doomed)
  const { id: runId } = await rig.until('select id from carillon.runs')

  const second = await rig.arrival(2)
  second.answer(200)
  const run = await rig.outcome(schedule)

  expect(run).toMatchObject({ id: runId, state: 'succeeded', attemptCount: 2 })
  expect(run.attempts).toMatchObject([{ outcome: 'lost' }, { outcome: 'succeeded' }])
  expect(run.attempts[1]?.workerId).not.toBe(run.attempts[0]?.workerId)
  expect(identityOf(second.headers)).toEqual(identityOf(first.headers))
  expect(second.body).toBe(first.body)
  expect([first, second].map(({ headers }) => headers['carillon-attempt'])).toEqual(['1', '2'])
})

test.concurrent('if a worker is killed after the answer and before the settlement, its run is sent again with the same key (I5)', async () => {
  await using rig = await CrashRig.start('short')
  const { pool } = rig.database
  const doomed = await rig.worker('doomed')
  const schedule = await rig.run()
  const first = await rig.arrival(1)
  const holder = await pool.connect()
  await holder.query('begin')
  await holder.query('select from carillon.runs for update')
  first.answer(200)
  const { pid } = await rig.until(
    `select pid from pg_stat_activity
     where datname = current_database() and wait_event_type = 'Lock' and application_name = 'carillon doomed'
       -- The statement of the settlement. Upkeep waits for the rows as well.
       and query like '%failures_reset%'`,
  )

  await killed(doomed)
  // Its session could still execute a statement that it received before the kill.
  await pool.query('select pg_terminate_backend($1, 5000)', [pid])
  await holder.query('rollback')
  holder.release()
  await rig.worker('other')
  const second = await rig.arrival(2)
  second.answer(200)
  const run = await rig.outcome(schedule)

  expect(run).toMatchObject({ state: 'succeeded', attempts: [{ outcome: 'lost' }, { outcome: 'succeeded' }] })
  expect(identityOf(second.headers)).toEqual(identityOf(first.headers))
  expect(second.body).toBe(first.body)
})

test.concurrent('a worker that is killed before BEGIN commits leaves no line, and another worker begins the slot (I3)', async () => {
  await using rig = await CrashRig.start('short')
  const { pool } = rig.database
  const doomed = await rig.worker('doomed')
  const holder = await pool.connect()
  await holder.query('begin')
  await holder.query('lock table carillon.runs in share mode')
  const schedule = await rig.create()
  const { pid } = await rig.until(
    `select pid from pg_stat_activity
     where datname = current_database() and wait_event_type = 'Lock' and application_name = 'carillon doomed'`,
  )

  await killed(doomed)
  await holder.query('rollback')
  holder.release()
  await rig.until('select where not exists (select from pg_stat_activity where pid = $1)', [pid])
  expect(await rig.scheduler.listRuns(CALLER, schedule.id)).toEqual([])
  expect(await rig.scheduler.get(CALLER, schedule.id)).toMatchObject({
    state: 'active',
    nextSlotAt: schedule.nextSlotAt,
    runCount: 0,
  })
  await rig.worker('other')
  const arrival = await rig.arrival(1)
  arrival.answer(200)

  expect(await rig.outcome(schedule)).toMatchObject({
    state: 'succeeded',
    attemptCount: 1,
    scheduledFor: schedule.nextSlotAt,
  })
  expect(rig.arrivals).toBe(1)
})

test.concurrent('a worker that was stopped for longer than its lease changes nothing when it continues (I12)', async () => {
  await using rig = await CrashRig.start('short')
  const stopped = await rig.worker('stopped')
  const schedule = await rig.run()
  const first = await rig.arrival(1)
  const { id: lostId } = await rig.until(`select id from carillon.workers where name = 'stopped'`)
  await rig.worker('other')
  stopped.kill('SIGSTOP')

  const second = await rig.arrival(2)
  second.answer(200)
  await rig.outcome(schedule)
  const before = await rig.ledger()
  first.answer(500)
  stopped.kill('SIGCONT')
  // The worker is alive: it returns with a new id, without its former runs.
  await rig.until(`select from carillon.workers where name = 'stopped' and id <> $1`, [lostId])

  expect(await rig.ledger()).toEqual(before)
  expect(await rig.outcome(schedule)).toMatchObject({ state: 'succeeded', attemptCount: 2 })
  expect(stopped.exitCode).toBeNull()
})
