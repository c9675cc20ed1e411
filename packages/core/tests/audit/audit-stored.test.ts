import { describe, expect, test } from 'vitest'

import type { AuditCounts } from '../../src/audit/auditor.ts'
import type { Db } from '../../src/db/database.ts'
import { createPool } from '../../src/db/pool.ts'
import { emptiedPipelines } from '../emptied-pipeline.ts'
import { createCopies } from '../many-schedules.ts'
import { CALLER, MINUTE, type Pipeline, type TestWorker } from '../pipeline.ts'
import { watchedDb } from '../query-plan.ts'
import { sql } from '../sql.ts'
import { TestAuditor } from '../test-auditor.ts'

const pipelineAt = emptiedPipelines()

const EVERY_QUARTER = { cadence: { kind: 'cron', expression: '*/15 * * * *', timezone: 'UTC' } }
const FAR = Number.MAX_SAFE_INTEGER

function auditorOf({ workerDb, clock, events }: Pipeline, db: Db = workerDb): TestAuditor {
  return new TestAuditor({ db, clock, events })
}

function foundBy(counts: AuditCounts | undefined): Record<string, number> {
  return Object.fromEntries(Object.entries(counts?.findings ?? {}).filter(([, count]) => count > 0))
}

/** Runs one full audit and postpones the next, so that only recent slots are compared afterwards. */
async function auditOnce({ db }: Pipeline, auditor: TestAuditor): Promise<void> {
  expect(await auditor.runOnce()).toMatchObject({ isWhole: true })
  await sql`
    update carillon.service_turns set cursor = json_build_object('nextFullAt', ${FAR}::bigint, 'changeId', cursor ->> 'changeId')
    where name = 'audit'`.execute(db)
}

/** Advances the clock by 15 s at a time, and runs what is due and the auditor. */
async function passAudited(
  pipeline: Pipeline,
  ms: number,
  worker: TestWorker,
  auditor: TestAuditor,
): Promise<AuditCounts[]> {
  const audits: AuditCounts[] = []
  for (let left = ms; left > 0; left -= 15_000) {
    await pipeline.pass(15_000, worker)
    await worker.runDue()
    const counts = await auditor.runOnce()
    if (counts !== undefined) audits.push(counts)
  }
  return audits
}

/** Makes Postgres reject inserts into a table during `work`, for the rows of a condition. */
async function whileRefused<Result>(
  { db }: Pipeline,
  { table, when = 'true' }: { readonly table: string; readonly when?: string },
  work: () => Promise<Result>,
): Promise<Result> {
  await sql`
    create function public.refuse() returns trigger language plpgsql as $$ begin raise exception 'the disk is full'; end $$`.execute(
    db,
  )
  await sql`
    create trigger refuse before insert on ${sql.raw(table)} for each row when (${sql.raw(when)}) execute function public.refuse()`.execute(
    db,
  )
  try {
    return await work()
  } finally {
    await sql`drop function public.refuse() cascade`.execute(db)
  }
}

async function countFindings({ db }: Pipeline): Promise<number> {
  const { rows } = await sql<{ count: number }>`select count(*)::int as count from carillon.audit_findings`.execute(db)
  return rows[0]?.count ?? 0
}

describe('a slice that could not be stored', () => {
  test('is repeated in the middle of a full audit, and finds the same again', async () => {
    const pipeline = await pipelineAt('2026-11-14T08:59:00Z')
    const { db, clock, database } = pipeline
    // It has room for all runs: a full worker would leave some for later.
    const worker = pipeline.worker('worker', 500)
    await createCopies(pipeline, 449, { cadence: { kind: 'cron', expression: '0 9 * * *', timezone: 'UTC' } })
    clock.advance(MINUTE)
    await worker.runDue()
    await sql`delete from carillon.attempts where schedule_id = (select id from carillon.schedules order by id desc limit 1)`.execute(
      db,
    )
    // Each statement takes so long that one slice cannot audit everything.
    const pool = createPool({ connectionString: database.url, role: 'carillon_worker' })
    const slow = watchedDb(pool, () => clock.advance(100))
    const auditor = auditorOf(pipeline, slow)
    await pipeline.scheduler.requestAudit()
    expect(await auditor.runOnce()).toMatchObject({ isWhole: false })

    await whileRefused(pipeline, { table: 'carillon.audit_findings' }, async () => {
      await expect(auditor.runOnce()).rejects.toThrow('the disk is full')
    })
    const again = await auditor.runOnce()

    expect(foundBy(again)).toEqual({ attempt_missing: 1 })
    expect(await auditor.runOnce()).toMatchObject({ isWhole: true })
    expect(await pipeline.scheduler.latestAudit()).toMatchObject({ isWhole: true, findings: 1, repaired: 0 })
    expect(await countFindings(pipeline)).toBe(1)
    await slow.close()
  })

  test('compares recent slots again', async () => {
    const pipeline = await pipelineAt('2026-11-14T09:00:00Z')
    const worker = pipeline.worker()
    const { id } = await pipeline.create(EVERY_QUARTER)
    const auditor = auditorOf(pipeline)
    await auditOnce(pipeline, auditor)
    await passAudited(pipeline, 15 * MINUTE, worker, auditor)
    await sql`
      insert into carillon.runs (
        schedule_id, scheduled_for, id, tenant_id, project_id, revision, trigger, state, reason, begun_at, completed_at
      )
      select schedule_id, scheduled_for + interval '1 second', gen_random_uuid(), tenant_id, project_id, revision, trigger, 'skipped',
        'missed', begun_at, completed_at
      from carillon.runs where schedule_id = ${id}`.execute(pipeline.db)

    await whileRefused(pipeline, { table: 'carillon.audit_findings' }, async () => {
      await expect(passAudited(pipeline, 5 * MINUTE, worker, auditor)).rejects.toThrow('the disk is full')
    })
    const audits = await passAudited(pipeline, MINUTE, worker, auditor)

    expect(audits.map(foundBy).filter((found) => found['slot_unknown'] === 1)).toHaveLength(1)
    expect(await pipeline.scheduler.findings(CALLER)).toMatchObject([{ kind: 'slot_unknown' }])
  })

  test('leaves no repair without its finding, because one transaction writes both', async () => {
    const pipeline = await pipelineAt('2026-11-14T08:59:30Z')
    const { db, scheduler } = pipeline
    const worker = pipeline.worker()
    const schedule = await pipeline.create()
    const counted = await pipeline.create()
    await pipeline.pass(MINUTE, worker)
    await worker.runDue()
    await sql`delete from carillon.runs where schedule_id = ${schedule.id}`.execute(db)
    await sql`update carillon.schedules set run_count = 0 where id = ${counted.id}`.execute(db)
    const auditor = auditorOf(pipeline)

    await whileRefused(pipeline, { table: 'carillon.audits', when: 'new.is_whole' }, async () => {
      await expect(auditor.runOnce()).rejects.toThrow('the disk is full')
    })
    expect(await pipeline.lines(schedule)).toEqual(['09:00 succeeded'])
    const stored = (await scheduler.findings(CALLER)).map(({ kind, isRepaired }) => ({ kind, isRepaired }))
    expect(new Set(stored)).toEqual(
      new Set([
        { kind: 'slot_lost', isRepaired: true },
        { kind: 'count_wrong', isRepaired: true },
      ]),
    )
    expect(foundBy(await auditor.runOnce())).toEqual({})
    expect(await scheduler.latestAudit()).toMatchObject({ isWhole: true, findings: 2, repaired: 2 })

    // If the finding cannot be stored, the repair is rolled back.
    await sql`delete from carillon.runs where schedule_id = ${schedule.id}`.execute(db)
    await whileRefused(pipeline, { table: 'carillon.audit_findings' }, async () => {
      await expect(auditorOf(pipeline).audit()).rejects.toThrow('the disk is full')
    })
    expect(await pipeline.lines(schedule)).toEqual([])
  })

  test('because another worker took the turn emits no event, and the other worker finds the same', async () => {
    const pipeline = await pipelineAt('2026-11-14T08:59:30Z')
    const { db, clock, database, events } = pipeline
    const worker = pipeline.worker()
    await pipeline.create()
    await pipeline.pass(MINUTE, worker)
    await worker.runDue()
    await sql`delete from carillon.attempts`.execute(db)
    const emitted: unknown[] = []
    events.on('audit.found', (event) => emitted.push(event))
    const pool = createPool({ connectionString: database.url, role: 'carillon_worker' })
    // Another worker takes the turn in the middle of the slice, as after a pause of a minute.
    const interrupted = watchedDb(pool, async ({ text }) => {
      if (!text.includes('candidates')) return
      await sql`update carillon.service_turns set worker_id = gen_random_uuid(), until = until + interval '1 second'`.execute(
        db,
      )
    })

    expect(await auditorOf(pipeline, interrupted).runOnce()).toBeUndefined()
    expect([emitted, await countFindings(pipeline)]).toEqual([[], 0])
    clock.advance(MINUTE)
    expect(foundBy(await auditorOf(pipeline).runOnce())).toEqual({ attempt_missing: 1 })
    expect(emitted).toEqual([{ findings: 1, repaired: 0 }])
    await interrupted.close()
  })
})

describe('the lag of the audit', () => {
  test('does not pass slots that came due while no worker read the agenda, until a full audit has compared them', async () => {
    const pipeline = await pipelineAt('2026-11-14T09:00:00Z')
    const worker = pipeline.worker()
    await pipeline.create()
    const auditor = auditorOf(pipeline)
    await auditOnce(pipeline, auditor)
    await passAudited(pipeline, 10 * MINUTE, worker, auditor)
    const lastLookAt = pipeline.clock.instant

    // Slots begin while the auditor does not run.
    await pipeline.pass(20 * MINUTE, worker)
    await worker.runDue()
    await passAudited(pipeline, 10 * MINUTE, worker, auditor)

    // The auditor had read the agenda two minutes ahead.
    const missedFrom = lastLookAt + 2 * MINUTE
    expect(await pipeline.scheduler.auditedUntil()).toBe(missedFrom)
    expect(auditor.lagMs).toBe(pipeline.clock.instant - missedFrom)
    await pipeline.scheduler.requestAudit()
    expect(await auditor.runOnce()).toMatchObject({ isWhole: true })
    expect(auditor.lagMs).toBeLessThan(3 * MINUTE)
  })

  test('is unknown before the first full audit is finished', async () => {
    const pipeline = await pipelineAt('2026-11-14T09:00:00Z')
    const worker = pipeline.worker()
    await pipeline.create()
    const auditor = auditorOf(pipeline)
    await sql`
      insert into carillon.service_turns (name, next_at, cursor)
      values ('audit', '2000-01-01', json_build_object('nextFullAt', ${FAR}::bigint))`.execute(pipeline.db)

    await passAudited(pipeline, 10 * MINUTE, worker, auditor)

    expect([await pipeline.scheduler.auditedUntil(), auditor.lagMs]).toEqual([null, null])
  })

  test('grows during a long rest, in which the auditor reads the agenda and compares nothing', async () => {
    const pipeline = await pipelineAt('2026-11-14T09:00:00Z')
    const { clock, db } = pipeline
    const worker = pipeline.worker()
    await pipeline.create()
    const auditor = auditorOf(pipeline)
    await auditOnce(pipeline, auditor)
    // As after a slice that took three seconds.
    await sql`
      update carillon.service_turns
      set cursor = json_build_object('nextFullAt', ${FAR}::bigint, 'changeId', cursor ->> 'changeId', 'restUntil', ${clock.instant + 5 * MINUTE}::bigint)
      where name = 'audit'`.execute(db)

    const resting = await passAudited(pipeline, 4.5 * MINUTE, worker, auditor)
    const after = await passAudited(pipeline, 5 * MINUTE, worker, auditor)

    expect(resting.map(({ slots }) => slots)).toEqual(resting.map(() => 0))
    expect(resting.length).toBeGreaterThan(10)
    expect(after.some(({ slots }) => slots > 4)).toBe(true)
    expect(auditor.lagMs).toBeLessThan(3 * MINUTE)
  })
})
