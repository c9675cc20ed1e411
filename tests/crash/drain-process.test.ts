import { once } from 'node:events'

import { expect, test } from 'vitest'

import { CALLER, CrashRig } from './rig.ts'

test.concurrent('a worker that gets SIGTERM settles the runs that end in time, leaves the list of workers, and exits with 0', async () => {
  await using rig = await CrashRig.start('long')
  const leaving = await rig.worker('leaving')
  const schedule = await rig.run()
  const arrival = await rig.arrival(1)
  const exited = once(leaving, 'exit')

  leaving.kill('SIGTERM')
  // A worker that has received the signal stops listening first.
  await rig.until(`
    select where not exists (
      select from pg_stat_activity where datname = current_database() and application_name = 'carillon listener'
    )`)
  arrival.answer(200)

  expect(await exited).toEqual([0, null])
  expect(await rig.outcome(schedule)).toMatchObject({ state: 'succeeded', attemptCount: 1 })
  expect((await rig.database.pool.query('select from carillon.workers')).rows).toEqual([])
})

test.concurrent(
  'a worker that gets SIGTERM hands back the runs that hang, without counting their attempts, and exits with 0',
  { timeout: 120_000 },
  async () => {
    await using rig = await CrashRig.start('long')
    const leaving = await rig.worker('leaving')
    const schedule = await rig.run()
    const first = await rig.arrival(1)
    const exited = once(leaving, 'exit')
    await rig.worker('other')

    leaving.kill('SIGTERM')
    expect(await exited).toEqual([0, null])
    const second = await rig.arrival(2)
    second.answer(200)

    expect([first, second].map(({ headers }) => headers['carillon-attempt'])).toEqual(['1', '1'])
    expect(second.headers['idempotency-key']).toBe(first.headers['idempotency-key'])
    const run = await rig.outcome(schedule)
    expect(run).toMatchObject({ state: 'succeeded', attemptCount: 1, attempts: [{ attempt: 1, outcome: 'succeeded' }] })
    expect(await rig.scheduler.get(CALLER, schedule.id)).toMatchObject({ runCount: 1, failureCount: 0 })
  },
)
