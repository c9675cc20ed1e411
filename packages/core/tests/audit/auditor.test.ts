import { expect, test } from 'vitest'

import type { AuditorOptions } from '../../src/audit/auditor.ts'
import { findLatestAudit } from '../../src/audit/store/audits.ts'
import { listFindings } from '../../src/audit/store/findings.ts'
import { createPool } from '../../src/db/pool.ts'
import { createCopies } from '../many-schedules.ts'
import { CALLER, DAY, HOUR, MINUTE, Pipeline, type TestWorker } from '../pipeline.ts'
import { watchedDb } from '../query-plan.ts'
import { held } from '../scripted-target.ts'
import { sql } from '../sql.ts'
import { TestAuditor } from '../test-auditor.ts'

const NO_FINDINGS = {
  slot_lost: 0,
  slot_unknown: 0,
  schedule_past_due: 0,
  run_without_lease: 0,
  run_stuck: 0,
  attempt_missing: 0,
  revision_missing: 0,
  module_check: 0,
  run_contradicted: 0,
  count_wrong: 0,
}

const EVERY_QUARTER = { cadence: { kind: 'cron', expression: '*/15 * * * *', timezone: 'UTC' } }

function auditorOf({ workerDb: db, clock, events }: Pipeline, options: AuditorOptions = {}): TestAuditor {
  return new TestAuditor({ db, clock, events }, options)
}

/** Advances the clock in steps, and runs what is due after each. */
async function pass({ clock }: Pipeline, worker: TestWorker, ms: number, stepMs = 15 * MINUTE): Promise<void> {
  for (let left = ms; left > 0; left -= stepMs) {
    clock.advance(Math.min(stepMs, left))
    await worker.runDue()
  }
}

async function removeLine({ db }: Pipeline, { id }: { readonly id: string }, slot: string): Promise<void> {
  const { rows } = await sql`
    delete from carillon.runs where schedule_id = ${id} and scheduled_for = ${slot} returning id`.execute(db)
  expect(rows).toHaveLength(1)
}

async function removeAttempts({ db }: Pipeline, { id }: { readonly id: string }, ...slots: string[]): Promise<void> {
  await sql`
    delete from carillon.attempts where schedule_id = ${id} and scheduled_for = any(${slots}::timestamptz[])`.execute(
    db,
  )
}

async function addLine({ db }: Pipeline, { id }: { readonly id: string }, slot: string): Promise<void> {
  await sql`
    insert into carillon.runs (
      schedule_id, scheduled_for, id, tenant_id, project_id, revision, trigger, state, reason, begun_at, completed_at
    )
    values (
      ${id}, ${slot}, gen_random_uuid(), ${CALLER.tenantId}, ${CALLER.projectId}, 1, 'schedule', 'skipped', 'missed', ${slot},
      ${slot}
    )`.execute(db)
}

test('an audit finds nothing in a ledger that the pipeline wrote, through edits, pauses, skips and deletion (I6)', async () => {
  await using pipeline = await Pipeline.at('2026-11-14T08:07:00Z')
  const { scheduler, clock } = pipeline
  const worker = pipeline.worker()
  const steady = await pipeline.create(EVERY_QUARTER)
  const edited = await pipeline.create(EVERY_QUARTER)
  const paused = await pipeline.create(EVERY_QUARTER)
  const deleted = await pipeline.create(EVERY_QUARTER)
  const once = await pipeline.create({ cadence: { kind: 'once', at: '2026-11-14T12:00:00Z' } })
  await pass(pipeline, worker, 5 * HOUR)
  const hourly = { kind: 'cron', expression: '7 * * * *', timezone: 'Europe/Madrid' }
  await scheduler.edit(CALLER, edited.id, { cadence: hourly }, { revision: 1 })
  await scheduler.edit(CALLER, edited.id, { name: 'Renamed' }, { revision: 2 })
  await scheduler.skip(CALLER, steady.id, Date.parse('2026-11-14T14:00:00Z'))
  // These slots are due and not begun, so the changes must write their lines.
  clock.advance(20 * MINUTE)
  await scheduler.pause(CALLER, paused.id, { reason: 'a holiday' })
  await scheduler.delete(CALLER, deleted.id)
  await pass(pipeline, worker, 4 * HOUR)
  await scheduler.resume(CALLER, paused.id)
  await scheduler.edit(CALLER, paused.id, { cadence: { ...hourly, timezone: 'UTC' } }, { revision: 1 })
  await pass(pipeline, worker, 10 * HOUR)

  const counts = await auditorOf(pipeline).audit()

  const { rows } = await sql<{ lines: string }>`select count(*) as lines from carillon.runs`.execute(pipeline.db)
  expect(counts).toEqual({
    schedules: 5,
    slots: Number(rows[0]?.lines),
    findings: NO_FINDINGS,
    repaired: 0,
    unreadable: 0,
    truncated: 0,
    isWhole: true,
  })
  expect(counts.slots).toBeGreaterThan(120)
  expect(await pipeline.lines(once)).toEqual(['12:00 succeeded'])
})

test('a line that was deleted by hand is found, restored from its attempts, and not found again', async () => {
  await using pipeline = await Pipeline.at('2026-11-14T08:00:00Z')
  const worker = pipeline.worker()
  const schedule = await pipeline.create(EVERY_QUARTER)
  await pass(pipeline, worker, HOUR)
  await removeLine(pipeline, schedule, '2026-11-14T08:30:00Z')
  const emitted: unknown[] = []
  pipeline.events.on('audit.found', (event) => emitted.push(['found', event]))
  pipeline.events.on('audit.finished', (event) => emitted.push(['finished', event]))

  const counts = await auditorOf(pipeline).audit()

  expect(counts).toMatchObject({ slots: 4, findings: { ...NO_FINDINGS, slot_lost: 1 }, repaired: 1 })
  expect(emitted).toEqual([
    ['found', { findings: 1, repaired: 1 }],
    ['finished', { findings: 1, repaired: 1, slots: 4, unaudited: 0 }],
  ])
  expect(await pipeline.lines(schedule)).toEqual([
    '08:15 succeeded',
    '08:30 succeeded',
    '08:45 succeeded',
    '09:00 succeeded',
  ])
  const now = Date.parse('2026-11-14T09:00:00Z')
  const audit = await findLatestAudit(pipeline.db, { now: pipeline.clock.databaseNow() })
  expect(audit).toMatchObject({
    from: now - 26 * HOUR,
    to: now,
    startedAt: now,
    completedAt: now,
    schedules: 1,
    slots: 4,
  })
  expect(audit).toMatchObject({ findings: 1, repaired: 1 })
  expect(await listFindings(pipeline.db, { ...CALLER, limit: 10 })).toEqual([
    {
      // A repair stores its finding in its own transaction, under an audit of its own.
      auditId: expect.not.stringMatching(audit?.id ?? '') as string,
      foundAt: now,
      seenAt: now,
      kind: 'slot_lost',
      scheduleId: schedule.id,
      scheduledFor: Date.parse('2026-11-14T08:30:00Z'),
      detail:
        'the slot came due under revision 1 and left no line: ' +
        'its attempts say that it ran, so its line was restored as succeeded; nothing is left to do',
      isRepaired: true,
    },
  ])
  expect(await listFindings(pipeline.db, { ...CALLER, tenantId: 'other', limit: 10 })).toEqual([])
  expect((await auditorOf(pipeline).audit()).findings).toEqual(NO_FINDINGS)
})

test('a lost slot gets its line with the revision under which it came due, even if the schedule was deleted since', async () => {
  await using pipeline = await Pipeline.at('2026-11-14T08:00:00Z')
  const worker = pipeline.worker()
  const schedule = await pipeline.create(EVERY_QUARTER)
  await pass(pipeline, worker, 30 * MINUTE)
  await pipeline.scheduler.edit(CALLER, schedule.id, { name: 'Renamed' }, { revision: 1 })
  await pass(pipeline, worker, 30 * MINUTE)
  await pipeline.scheduler.delete(CALLER, schedule.id)
  await removeLine(pipeline, schedule, '2026-11-14T08:30:00Z')
  await removeLine(pipeline, schedule, '2026-11-14T08:45:00Z')
  await removeAttempts(pipeline, schedule, '2026-11-14T08:30:00Z', '2026-11-14T08:45:00Z')
  await pass(pipeline, worker, 5 * HOUR)

  // No line and no attempt is left of the two runs.
  expect((await auditorOf(pipeline).audit()).findings).toEqual({ ...NO_FINDINGS, slot_lost: 2, count_wrong: 1 })

  const { rows } = await sql<{ revision: number; state: string; reason: string | null }>`
    select revision, state, reason from carillon.runs where schedule_id = ${schedule.id} order by scheduled_for`.execute(
    pipeline.db,
  )
  expect(rows).toEqual([
    { revision: 1, state: 'succeeded', reason: null },
    { revision: 1, state: 'skipped', reason: 'missed' },
    { revision: 2, state: 'skipped', reason: 'missed' },
    { revision: 2, state: 'succeeded', reason: null },
  ])
  const details = (await listFindings(pipeline.db, { ...CALLER, limit: 10 })).map(({ detail }) => detail)
  expect(details).toContain(
    'the slot came due under revision 1 and left no line: the audit wrote the line as skipped (missed), ' +
      'because the slot did not run; run the schedule by hand if the work is still wanted',
  )
})

test('slots are lost if the next slot of a schedule was moved over them by hand', async () => {
  await using pipeline = await Pipeline.at('2026-11-14T08:00:00Z')
  await pipeline.create(EVERY_QUARTER)
  await sql`update carillon.schedules set next_slot_at = '2026-11-14T08:45Z', due_at = '2026-11-14T08:45Z'`.execute(
    pipeline.db,
  )
  await pass(pipeline, pipeline.worker(), HOUR)

  expect(await auditorOf(pipeline).audit()).toMatchObject({ slots: 4, findings: { ...NO_FINDINGS, slot_lost: 2 } })
})

test('a run-now and a cancel end no span of the history: slots that were moved over before them are still lost', async () => {
  await using pipeline = await Pipeline.at('2026-11-14T08:00:00Z')
  const schedule = await pipeline.create(EVERY_QUARTER)
  await sql`update carillon.schedules set next_slot_at = '2026-11-14T08:45Z', due_at = '2026-11-14T08:45Z'`.execute(
    pipeline.db,
  )
  pipeline.clock.advance(5 * MINUTE)
  const { id } = await pipeline.scheduler.runNow(CALLER, schedule.id)
  await pipeline.scheduler.cancel(CALLER, id)
  await pass(pipeline, pipeline.worker(), HOUR)

  expect(await auditorOf(pipeline).audit()).toMatchObject({ slots: 4, findings: { ...NO_FINDINGS, slot_lost: 2 } })
})

test('lines for which no revision has a slot are reported and never removed', async () => {
  await using pipeline = await Pipeline.at('2026-11-14T08:00:00Z')
  const worker = pipeline.worker()
  const schedule = await pipeline.create(EVERY_QUARTER)
  await pass(pipeline, worker, HOUR)
  await pipeline.scheduler.pause(CALLER, schedule.id, { reason: 'a holiday' })
  await pass(pipeline, worker, HOUR)
  await addLine(pipeline, schedule, '2026-11-14T08:15:00.001Z')
  // Instants of the cadence, one before the schedule was created and one while it was paused.
  await addLine(pipeline, schedule, '2026-11-14T07:45:00Z')
  await addLine(pipeline, schedule, '2026-11-14T09:30:00Z')

  const findings = { ...NO_FINDINGS, slot_unknown: 3 }
  expect(await auditorOf(pipeline).audit()).toMatchObject({ findings, repaired: 0 })
  expect(await auditorOf(pipeline).audit()).toMatchObject({ findings, repaired: 0 })
})

test('a line is not reported if its slot began while a pause waited for the lock', async () => {
  await using pipeline = await Pipeline.at('2026-11-14T08:00:00Z')
  const schedule = await pipeline.create(EVERY_QUARTER)
  await pass(pipeline, pipeline.worker(), HOUR)
  await pipeline.scheduler.pause(CALLER, schedule.id, { reason: 'a holiday' })
  await sql`update carillon.schedule_changes set changed_at = '2026-11-14T08:59:59.9Z' where change = 'paused'`.execute(
    pipeline.db,
  )

  expect((await auditorOf(pipeline).audit()).findings).toEqual(NO_FINDINGS)
})

test('a manual run is not a slot, but a manual run at the instant of a slot counts as its line', async () => {
  await using pipeline = await Pipeline.at('2026-11-14T08:00:00Z')
  const worker = pipeline.worker()
  const schedule = await pipeline.create(EVERY_QUARTER)
  await pass(pipeline, worker, HOUR)
  await pipeline.scheduler.runNow(CALLER, schedule.id)
  await worker.runDue()
  await sql`update carillon.runs set trigger = 'manual' where scheduled_for = '2026-11-14T08:30Z'`.execute(pipeline.db)

  expect(await auditorOf(pipeline).audit()).toMatchObject({ slots: 4, findings: NO_FINDINGS })
})

test('a schedule that no worker begins is one finding, and its due slots are not reported as lost', async () => {
  await using pipeline = await Pipeline.at('2026-11-14T08:00:00Z')
  const schedule = await pipeline.create(EVERY_QUARTER)
  pipeline.clock.advance(16 * MINUTE)
  // A delay of one minute is not reported.
  expect((await auditorOf(pipeline).audit()).findings).toEqual(NO_FINDINGS)
  pipeline.clock.advance(44 * MINUTE)

  const counts = await auditorOf(pipeline).audit()

  expect(counts).toMatchObject({ slots: 4, findings: { ...NO_FINDINGS, schedule_past_due: 1 }, repaired: 0 })
  expect(await listFindings(pipeline.db, { ...CALLER, limit: 10 })).toMatchObject([
    {
      kind: 'schedule_past_due',
      scheduleId: schedule.id,
      scheduledFor: Date.parse('2026-11-14T08:15:00Z'),
      detail: 'due since 2026-11-14T08:15:00.000Z, and no worker has begun it: start a worker that serves test',
      isRepaired: false,
    },
  ])
  expect(await pipeline.lines(schedule)).toEqual([])
})

test('a run whose worker has had no lease for a minute is reported, but only the rescuer repairs it', async () => {
  await using pipeline = await Pipeline.at('2026-11-14T08:00:00Z')
  const schedule = await pipeline.create(EVERY_QUARTER)
  const { script, answer } = held()
  pipeline.target.script = script
  const worker = pipeline.worker()
  pipeline.clock.advance(15 * MINUTE)
  await worker.startDue()
  pipeline.clock.advance(MINUTE)
  // The lease has expired, but a rescuer still has time.
  expect((await auditorOf(pipeline).audit()).findings).toEqual(NO_FINDINGS)
  pipeline.clock.advance(MINUTE)

  const counts = await auditorOf(pipeline).audit()

  expect(counts).toMatchObject({ findings: { ...NO_FINDINGS, run_without_lease: 1 }, repaired: 0 })
  expect(await pipeline.lines(schedule)).toEqual(['08:15 running'])
  answer({ kind: 'succeeded', result: null })
  await worker.loop.whenIdle()
})

test('a run that waits for its turn is not reported as stuck', async () => {
  await using pipeline = await Pipeline.at('2026-11-14T08:00:00Z')
  const schedule = await pipeline.create({
    ...EVERY_QUARTER,
    target: { kind: 'test', timeoutSeconds: 7200 },
    policy: { overlap: 'queue' },
  })
  const { script, answer } = held()
  pipeline.target.script = script
  const worker = pipeline.worker()
  for (let slot = 0; slot < 2; slot += 1) {
    pipeline.clock.advance(15 * MINUTE)
    await sql`update carillon.workers set lease_expires_at = 'infinity'`.execute(pipeline.db)
    await worker.startDue()
  }
  expect(await pipeline.lines(schedule)).toEqual(['08:15 running', '08:30 pending'])

  expect((await auditorOf(pipeline).audit()).findings).toEqual(NO_FINDINGS)

  answer({ kind: 'succeeded', result: null })
  await worker.loop.whenIdle()
})

test.each([
  { night: 'without one of its hours', start: '2026-03-28T12:00:00Z', lost: '2026-03-29T01:00:00Z' },
  { night: 'with one hour twice', start: '2026-10-24T12:00:00Z', lost: '2026-10-25T00:30:00Z' },
])('the slots of a night $night are expected as the pipeline began them', async ({ start, lost }) => {
  await using pipeline = await Pipeline.at(start)
  const worker = pipeline.worker()
  const daily = await pipeline.create({
    cadence: { kind: 'cron', expression: '30 2 * * *', timezone: 'Europe/Madrid' },
  })
  await pipeline.create({ cadence: { kind: 'cron', expression: '*/30 * * * *', timezone: 'Europe/Madrid' } })
  const both = { kind: 'cron', expression: '30 2 * * *', timezone: 'Europe/Madrid', dst: { gap: 'skip', fold: 'both' } }
  await pipeline.create({ cadence: both })
  await pass(pipeline, worker, DAY, 30 * MINUTE)

  expect((await auditorOf(pipeline).audit()).findings).toEqual(NO_FINDINGS)
  await removeLine(pipeline, daily, lost)
  expect((await auditorOf(pipeline).audit()).findings).toEqual({ ...NO_FINDINGS, slot_lost: 1 })
})

test('a slot is expected once it is due, which includes its spread', async () => {
  await using pipeline = await Pipeline.at('2026-11-14T08:30:00Z')
  const worker = pipeline.worker()
  const hourly = { kind: 'cron', expression: '0 * * * *', timezone: 'UTC' }
  const schedules = []
  // Enough for some to be due in the first half of the hour and some in the second, whatever their ids.
  for (let n = 0; n < 24; n += 1) {
    schedules.push(await pipeline.create({ cadence: hourly, policy: { spreadSeconds: 3600 } }))
  }
  pipeline.clock.advance(60 * MINUTE)
  await worker.runDue()
  const { rows } = await sql<{ begun: number }>`select count(*)::integer as begun from carillon.runs`.execute(
    pipeline.db,
  )
  const begun = rows[0]?.begun ?? 0
  expect(begun).toBeGreaterThan(0)
  expect(begun).toBeLessThan(24)

  expect(await auditorOf(pipeline).audit()).toMatchObject({ slots: begun, findings: NO_FINDINGS })
  // The slot came due after the window of its nominal instant had ended. The next window still includes it.
  await pass(pipeline, worker, DAY)
  const counts = await auditorOf(pipeline).audit()
  expect(counts.findings).toEqual(NO_FINDINGS)
  const [schedule] = schedules
  if (schedule !== undefined) await removeLine(pipeline, schedule, '2026-11-14T09:00:00Z')
  expect((await auditorOf(pipeline).audit()).findings).toEqual({ ...NO_FINDINGS, slot_lost: 1 })
})

test('a schedule whose revision cannot be read is counted as unreadable, and the others are audited', async () => {
  await using pipeline = await Pipeline.at('2026-11-14T08:00:00Z')
  const worker = pipeline.worker()
  const sound = await pipeline.create(EVERY_QUARTER)
  const broken = await pipeline.create(EVERY_QUARTER)
  const gone = await pipeline.create(EVERY_QUARTER)
  await pass(pipeline, worker, HOUR)
  await removeLine(pipeline, sound, '2026-11-14T08:30:00Z')
  await sql`
    update carillon.schedule_revisions set cadence_cron = '{"kind":"cron","expression":"whenever"}'
    where schedule_id = ${broken.id}`.execute(pipeline.db)
  await sql`delete from carillon.schedule_revisions where schedule_id = ${gone.id}`.execute(pipeline.db)

  const counts = await auditorOf(pipeline).audit()

  expect(counts).toMatchObject({
    schedules: 3,
    unreadable: 2,
    slots: 4,
    findings: { ...NO_FINDINGS, slot_lost: 1, revision_missing: 1 },
  })
  expect(await pipeline.scheduler.latestAudit()).toMatchObject({
    unreadable: 2,
    truncated: 0,
    findings: 2,
    repaired: 1,
  })
})

test('an audit finds nothing after an outage that the pipeline has caught up with', async () => {
  await using pipeline = await Pipeline.at('2026-11-01T00:00:00Z')
  const worker = pipeline.worker()
  await pipeline.create({ cadence: { kind: 'cron', expression: '*/5 * * * *', timezone: 'UTC' } })
  await worker.runDue()
  pipeline.clock.advance(6 * DAY)
  await worker.runDue()

  const counts = await auditorOf(pipeline, { windowMs: 30 * DAY }).audit()

  expect(counts).toMatchObject({ slots: (6 * DAY) / (5 * MINUTE), findings: NO_FINDINGS, truncated: 0 })
})

test('slots older than the retention are not audited', async () => {
  await using pipeline = await Pipeline.at('2026-11-01T00:00:00Z')
  const worker = pipeline.worker()
  const schedule = await pipeline.create({ cadence: { kind: 'cron', expression: '0 0 * * *', timezone: 'UTC' } })
  await pass(pipeline, worker, 5 * DAY, DAY)
  await removeLine(pipeline, schedule, '2026-11-03T00:00:00Z')
  await removeAttempts(pipeline, schedule, '2026-11-03T00:00:00Z')
  await sql`update carillon.schedules set run_count = run_count - 1`.execute(pipeline.db)

  const options = { windowMs: 365 * DAY, retentionMs: 2 * DAY }
  expect((await auditorOf(pipeline, options).audit()).findings).toEqual(NO_FINDINGS)
  expect((await auditorOf(pipeline, { ...options, retentionMs: 3 * DAY + HOUR }).audit()).findings.slot_lost).toBe(1)
})

test('more schedules than fit one page are all audited', async () => {
  await using pipeline = await Pipeline.at('2026-11-14T08:00:00Z')
  const { db } = pipeline
  await createCopies(pipeline, 450, EVERY_QUARTER)
  pipeline.clock.advance(15 * MINUTE)
  const worker = pipeline.worker('worker', 500)
  await worker.runDue()
  const { rows } = await sql<{ schedule_id: string }>`
    delete from carillon.runs
    where schedule_id in (
      select schedule_id from (select schedule_id, row_number() over (order by schedule_id) from carillon.runs) as line
      where row_number % 10 = 0
    )
    returning schedule_id`.execute(db)
  expect(rows).toHaveLength(45)

  const counts = await auditorOf(pipeline).audit()

  expect(counts).toMatchObject({ schedules: 451, slots: 451, findings: { ...NO_FINDINGS, slot_lost: 45 } })
  expect(counts.repaired).toBe(45)
})

test('a schedule and its lines are read in one snapshot, whatever is committed in between', async () => {
  await using pipeline = await Pipeline.at('2026-11-14T08:00:00Z')
  const { database, clock, events } = pipeline
  const schedule = await pipeline.create(EVERY_QUARTER)
  await pipeline.scheduler.pause(CALLER, schedule.id, { reason: 'a holiday' })
  clock.advance(HOUR)
  const pool = createPool({ connectionString: database.url, role: 'carillon_worker' })
  let resumed: Promise<unknown> | undefined
  // Between the reads of schedules and lines: commits a resume that began before the audit, and the slot after it.
  const db = watchedDb(pool, async ({ text }) => {
    if (!text.includes('as "firstSlotAt"')) return
    resumed ??= database.pool.query(
      `with resumed as (
         insert into carillon.schedule_changes
           (schedule_id, tenant_id, project_id, change, revision, next_slot_at, actor_subject, changed_at)
         values ('${schedule.id}', 'acme', 'web', 'resumed', 1, '2026-11-14T08:45Z', 'ada', '2026-11-14T08:40Z')
       )
       insert into carillon.runs
         (schedule_id, scheduled_for, id, tenant_id, project_id, revision, trigger, state, reason, begun_at, completed_at)
       values ('${schedule.id}', '2026-11-14T08:45Z', gen_random_uuid(), 'acme', 'web', 1, 'schedule', 'skipped', 'missed', now(), now())`,
    )
    await resumed
  })

  const audited = await new TestAuditor({ db, clock, events }).audit()

  expect(resumed).toBeDefined()
  expect(audited.findings).toEqual(NO_FINDINGS)
  expect(await auditorOf(pipeline).audit()).toMatchObject({ findings: { ...NO_FINDINGS, slot_lost: 1 } })
  await db.close()
})

test('slots that are claimed while an audit runs are not reported as lost', async () => {
  await using pipeline = await Pipeline.at('2026-11-14T08:00:00Z')
  for (let n = 0; n < 30; n += 1) await pipeline.create()
  const worker = pipeline.worker()
  const auditor = auditorOf(pipeline)

  const running = pass(pipeline, worker, 20 * MINUTE, MINUTE)
  const findings = []
  for (let n = 0; n < 20; n += 1) findings.push((await auditor.audit()).findings)
  await running

  for (const found of findings) expect(found).toMatchObject({ slot_lost: 0, slot_unknown: 0 })
})
