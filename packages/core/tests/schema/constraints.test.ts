import { afterAll, beforeAll, describe, expect, test } from 'vitest'

import { createDatabase, type TestDatabase } from '../database.ts'
import { insertGrant, insertRevision, insertRun, insertSchedule } from './rows.ts'

let database: TestDatabase

beforeAll(async () => {
  database = await createDatabase()
})
afterAll(() => database[Symbol.asyncDispose]())

function rejectedBy(constraint: string): unknown {
  return expect.objectContaining({ constraint })
}

describe('I1: the next slot is a column of the schedule', () => {
  test('an active schedule without a next slot is refused', async () => {
    await expect(insertSchedule(database.pool, { next_slot_at: null, due_at: null })).rejects.toEqual(
      rejectedBy('schedules_active_has_next_slot'),
    )
  })

  test.each([
    { state: 'paused', paused_at: '2026-11-15T12:00:00Z', paused_reason: 'holiday' },
    { state: 'completed' },
    { state: 'deleted', deleted_at: '2026-11-15T12:00:00Z' },
  ])('a $state schedule with a next slot is refused', async (changes) => {
    await expect(insertSchedule(database.pool, changes)).rejects.toEqual(rejectedBy('schedules_active_has_next_slot'))
  })

  test('a next slot with a fraction of a millisecond is refused', async () => {
    const slot = '2026-11-16T09:00:00.000001Z'

    await expect(insertSchedule(database.pool, { next_slot_at: slot, due_at: slot })).rejects.toEqual(
      rejectedBy('schedules_next_slot_at_check'),
    )
  })

  test('a paused schedule without a reason is refused', async () => {
    const changes = { state: 'paused', next_slot_at: null, due_at: null, paused_at: '2026-11-15T12:00:00Z' }

    await expect(insertSchedule(database.pool, changes)).rejects.toEqual(rejectedBy('schedules_paused_says_why'))
  })
})

describe('I2: one run per slot', () => {
  test('a second run of the same schedule and slot is refused, and another slot is not', async () => {
    const scheduleId = await insertSchedule(database.pool)
    await insertRun(database.pool, { schedule_id: scheduleId, scheduled_for: '2026-11-16T09:00:00Z' })

    await insertRun(database.pool, { schedule_id: scheduleId, scheduled_for: '2026-11-17T09:00:00Z' })
    await expect(
      insertRun(database.pool, { schedule_id: scheduleId, scheduled_for: '2026-11-16T09:00:00Z' }),
    ).rejects.toMatchObject({ code: '23505', table: 'runs_2026_11' })
  })
})

describe('I1: the row of a run contains what the run waits for', () => {
  const WORKER = '018f0000-0000-7000-8000-000000000001'
  const AT = '2026-11-16T09:00:00Z'
  const ENDED = { completed_at: AT, due_at: null, waits_for: null, lane: null }
  const RUNNING = { ...ENDED, completed_at: null, state: 'running', attempt_count: 1, token: 1, worker_id: WORKER }

  test.each([
    ['its turn, until infinity', { waits_for: 'turn', due_at: 'infinity' }],
    ['a worker', { waits_for: 'worker', due_at: AT }],
    [
      'a worker after an attempt',
      { state: 'retrying', waits_for: 'worker', due_at: AT, lane: 'http.0', attempt_count: 1 },
    ],
    ['its retry', { state: 'retrying', waits_for: 'retry', due_at: AT, lane: 'http.0', attempt_count: 1 }],
    ['an instant that its target requested', { waits_for: 'deferred', due_at: AT }],
  ])('a run may wait for %s', async (_, changes) => {
    const scheduleId = await insertSchedule(database.pool)

    await insertRun(database.pool, { schedule_id: scheduleId, scheduled_for: AT, ...changes })
  })

  test.each([
    ['a pending run that waits for nothing', { waits_for: null, due_at: null, lane: null }],
    ['a waiting run without an instant', { due_at: null }],
    ['a waiting run without a lane', { lane: null }],
    ['a waiting run without what it waits for', { waits_for: null }],
    ['a run that waits for its turn and has an instant', { waits_for: 'turn' }],
    ['a run that waits for a worker until infinity', { due_at: 'infinity' }],
    ['a running run that waits', { ...RUNNING, waits_for: 'worker', due_at: AT, lane: 'http.0' }],
    [
      'an ended run that waits',
      { state: 'skipped', reason: 'missed', waits_for: 'worker', due_at: AT, lane: 'http.0' },
    ],
  ])('%s is refused', async (_, changes) => {
    const scheduleId = await insertSchedule(database.pool)

    await expect(insertRun(database.pool, { schedule_id: scheduleId, scheduled_for: AT, ...changes })).rejects.toEqual(
      rejectedBy('runs_waiting_says_when'),
    )
  })

  test.each([
    ['a pending run that was tried', { attempt_count: 1 }],
    ['a pending run that waits for a retry', { waits_for: 'retry' }],
    ['a retrying run that was never tried', { state: 'retrying', waits_for: 'retry', due_at: AT, lane: 'http.0' }],
    [
      'a retrying run that waits for its turn',
      { state: 'retrying', waits_for: 'turn', due_at: 'infinity', lane: 'http.0', attempt_count: 1 },
    ],
  ])('%s is refused', async (_, changes) => {
    const scheduleId = await insertSchedule(database.pool)

    await expect(insertRun(database.pool, { schedule_id: scheduleId, scheduled_for: AT, ...changes })).rejects.toEqual(
      rejectedBy('runs_waits_as_its_state_says'),
    )
  })
})

describe('a revision', () => {
  test.each([
    ['no cadence', { cadence_kind: 'cron' }],
    ['two cadences', { cadence_kind: 'cron', cadence_cron: '{}', cadence_once: '{}' }],
    ['the cadence of another kind', { cadence_kind: 'cron', cadence_once: '{}' }],
  ])('with %s is refused', async (_, cadence) => {
    const scheduleId = await insertSchedule(database.pool)

    await expect(insertRevision(database.pool, { schedule_id: scheduleId, ...cadence })).rejects.toEqual(
      rejectedBy('schedule_revisions_one_cadence'),
    )
  })

  test('with exactly the cadence of its kind is accepted', async () => {
    const scheduleId = await insertSchedule(database.pool)

    await insertRevision(database.pool, { schedule_id: scheduleId, cadence_kind: 'cron', cadence_cron: '{}' })
  })

  test('of another tenant’s schedule is refused', async () => {
    const scheduleId = await insertSchedule(database.pool)
    const grantId = await insertGrant(database.pool, { tenant_id: 'rival' })
    const rival = { tenant_id: 'rival', grant_id: grantId }
    const revision = { schedule_id: scheduleId, ...rival, cadence_kind: 'cron', cadence_cron: '{}' }

    await expect(insertRevision(database.pool, revision)).rejects.toEqual(
      rejectedBy('schedule_revisions_tenant_id_project_id_schedule_id_fkey'),
    )
  })
})

describe('I8: every schedule has a grant', () => {
  test('a schedule without a grant and a revision with a grant of another project are refused (I9)', async () => {
    const grantId = await insertGrant(database.pool, { project_id: 'shop' })
    const scheduleId = await insertSchedule(database.pool)
    const cadence = { cadence_kind: 'cron', cadence_cron: '{}' }

    await expect(insertSchedule(database.pool, { grant_id: null })).rejects.toMatchObject({
      code: '23502',
      column: 'grant_id',
    })
    await expect(
      insertRevision(database.pool, { schedule_id: scheduleId, ...cadence, grant_id: grantId }),
    ).rejects.toEqual(rejectedBy('schedule_revisions_tenant_id_project_id_grant_id_fkey'))
  })

  test('a revision without its required scope is refused', async () => {
    const scheduleId = await insertSchedule(database.pool)
    const cadence = { cadence_kind: 'cron', cadence_cron: '{}' }

    await expect(
      insertRevision(database.pool, { schedule_id: scheduleId, ...cadence, required_scope: null }),
    ).rejects.toMatchObject({ code: '23502', column: 'required_scope' })
  })
})

describe('the auto-pause threshold of a schedule', () => {
  test.each([-1, 1, 2, 101])('cannot be %i', async (threshold) => {
    await expect(insertSchedule(database.pool, { auto_pause_threshold: threshold })).rejects.toEqual(
      rejectedBy('schedules_auto_pause_threshold_check'),
    )
  })

  test.each([0, 3, 100])('can be %i', async (threshold) => {
    await insertSchedule(database.pool, { auto_pause_threshold: threshold })
  })
})
