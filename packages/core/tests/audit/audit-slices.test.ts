import { randomUUID } from 'node:crypto'

import { describe, expect, onTestFinished, test } from 'vitest'

import type { AuditCounts } from '../../src/audit/auditor.ts'
import { RecentAudit } from '../../src/audit/recent-audit.ts'
import { SlotAudit } from '../../src/audit/slot-audit.ts'
import { listAuditedSchedules } from '../../src/audit/store/slots.ts'
import { createDb, type Db } from '../../src/db/database.ts'
import { createPool } from '../../src/db/pool.ts'
import type { Statement } from '../../src/db/sql.ts'
import { transact } from '../../src/db/transact.ts'
import { whileHeld } from '../blocked-statement.ts'
import { emptiedPipelines } from '../emptied-pipeline.ts'
import { createCopies } from '../many-schedules.ts'
import { ANY_NUMBER, CALLER, HOUR, MINUTE, type Pipeline, type TestWorker } from '../pipeline.ts'
import { nodesOf, plansOf, recordingDb, watchedDb, type ExplainRow, type PlanNode } from '../query-plan.ts'
import { countRowsReadIn } from '../rows-read.ts'
import { FAIL, held, SUCCEEDED } from '../scripted-target.ts'
import { sql } from '../sql.ts'
import { TestAuditor } from '../test-auditor.ts'

const pipelineAt = emptiedPipelines()

const EVERY_QUARTER = { cadence: { kind: 'cron', expression: '*/15 * * * *', timezone: 'UTC' } }
const FAR = Number.MAX_SAFE_INTEGER

function auditorOf({ workerDb, clock, events }: Pipeline, db: Db = workerDb): TestAuditor {
  return new TestAuditor({ db, clock, events })
}

function foundBy({ findings }: AuditCounts): Record<string, number> {
  return Object.fromEntries(Object.entries(findings).filter(([, count]) => count > 0))
}

interface StoredTurn {
  readonly cursor: {
    readonly full: {
      readonly next: { readonly at: { readonly scheduleId: string } }
      readonly requestedAt: number | null
    } | null
  }
  readonly reached_at: Date | null
  readonly next_at: Date
  readonly requested_at: Date | null
}

async function turnOf({ db }: Pipeline): Promise<StoredTurn> {
  const { rows } = await sql<StoredTurn>`
    select cursor, reached_at, next_at, requested_at from carillon.service_turns where name = 'audit'`.execute(db)
  const [row] = rows
  if (row === undefined) throw new Error('expected a turn of the audit, got none')
  return row
}

/** Postpones the full audit, so that only recent slots are compared. */
async function postponeFull({ db }: Pipeline): Promise<void> {
  await sql`
    insert into carillon.service_turns (name, next_at, cursor)
    values ('audit', '2000-01-01', json_build_object('nextFullAt', ${FAR}::bigint))
    on conflict (name) do update set cursor = excluded.cursor`.execute(db)
}

/** Advances the clock by 15 s at a time, runs what is due and the auditor. Returns the number of findings by kind. */
async function passAudited(
  pipeline: Pipeline,
  ms: number,
  worker: TestWorker,
  auditor: TestAuditor,
): Promise<Record<string, number>> {
  const found: Record<string, number> = {}
  for (let left = ms; left > 0; left -= 15_000) {
    await pipeline.pass(Math.min(left, 15_000), worker)
    await worker.runDue()
    const counts = await auditor.runOnce()
    for (const [kind, count] of Object.entries(counts === undefined ? {} : foundBy(counts))) {
      found[kind] = (found[kind] ?? 0) + count
    }
  }
  return found
}

async function removeLine({ db }: Pipeline, { id }: { readonly id: string }, slot: string): Promise<void> {
  const { rows } = await sql`
    delete from carillon.runs where schedule_id = ${id} and scheduled_for = ${slot} returning id`.execute(db)
  expect(rows).toHaveLength(1)
}

describe('an audit of a pipeline at work', () => {
  test('finds nothing while runs begin, fail, retry, overlap, and are replaced, cancelled, paused and edited', async () => {
    const pipeline = await pipelineAt('2026-11-14T09:00:30Z')
    const { scheduler, target } = pipeline
    const worker = pipeline.worker('worker', 50)
    const policies = ['forbid', 'queue', 'allow', 'replace'].flatMap((overlap) =>
      [1, 3].map((maxAttempts) => ({
        overlap,
        retry: { maxAttempts, baseSeconds: 20, capSeconds: 120 },
        autoPauseThreshold: 0,
      })),
    )
    const schedules = []
    for (let round = 0; round < 3; round += 1) {
      for (const policy of policies) {
        schedules.push(await pipeline.create({ policy, target: { kind: 'test', timeoutSeconds: 90 } }))
      }
    }
    // Of every three calls one succeeds, one fails, and one hangs until it is cancelled or times out.
    let calls = 0
    target.script = (context, signal) =>
      [() => SUCCEEDED, () => FAIL, held().script][(calls += 1) % 3]?.(context, signal) ?? SUCCEEDED
    const auditor = auditorOf(pipeline)
    const found: Record<string, number>[] = []

    for (let step = 0; step < 24; step += 1) {
      const change = schedules[(step * 7) % schedules.length]
      if (change === undefined) continue
      const act = async (): Promise<void> => {
        if (step % 4 === 0) await scheduler.runNow(CALLER, change.id).catch(() => undefined)
        if (step % 4 === 1) await scheduler.pause(CALLER, change.id, { reason: 'a holiday' }).catch(() => undefined)
        if (step % 4 === 2) {
          const policy = { ...change.policy, overlap: 'queue' as const }
          await scheduler.edit(CALLER, change.id, { policy }, { revision: 1 }).catch(() => undefined)
        }
        if (step % 4 === 3) {
          const open = (await pipeline.ledger(change)).find(({ state }) => state === 'retrying' || state === 'running')
          if (open !== undefined) await scheduler.cancel(CALLER, open.id).catch(() => undefined)
        }
      }
      await pipeline.pass(20_000, worker)
      const [, , audited] = await Promise.all([worker.startDue(), act(), auditorOf(pipeline).audit()])
      found.push(foundBy(audited))
      const counts = await auditor.runOnce()
      if (counts !== undefined) found.push(foundBy(counts))
    }

    expect(found.filter((kinds) => Object.keys(kinds).length > 0)).toEqual([])
    const { rows } = await sql<{
      states: number
    }>`select count(distinct state)::int as states from carillon.runs`.execute(pipeline.db)
    expect(rows[0]?.states).toBeGreaterThan(5)
    // The calls that hang time out.
    await pipeline.pass(2 * MINUTE, worker)
    await worker.loop.whenIdle()
  })

  test('reports slots that wait for busy workers only after ten minutes', async () => {
    const pipeline = await pipelineAt('2026-11-14T09:00:00Z')
    const worker = pipeline.worker('worker', 1)
    await pipeline.create({ ...EVERY_QUARTER, target: { kind: 'test', timeoutSeconds: 86_400 } })
    await pipeline.create({ ...EVERY_QUARTER, target: { kind: 'test', timeoutSeconds: 86_400 } })
    const { script, answer } = held()
    pipeline.target.script = script
    await pipeline.pass(15 * MINUTE, worker)
    await worker.startDue()

    await pipeline.pass(9 * MINUTE, worker)
    expect(foundBy(await auditorOf(pipeline).audit())).toEqual({})
    await pipeline.pass(2 * MINUTE, worker)
    expect(foundBy(await auditorOf(pipeline).audit())).toEqual({ schedule_past_due: 1 })
    answer(SUCCEEDED)
    await worker.loop.whenIdle()
  })

  test('does not report overdue slots after an outage during the first minute of a worker', async () => {
    const pipeline = await pipelineAt('2026-11-14T09:00:00Z')
    await pipeline.create(EVERY_QUARTER)
    pipeline.clock.advance(5 * HOUR)
    const worker = pipeline.worker()
    await worker.heartbeat.runOnce()

    expect(foundBy(await auditorOf(pipeline).audit())).toEqual({})
    await pipeline.pass(61_000, worker)
    expect(foundBy(await auditorOf(pipeline).audit())).toEqual({ schedule_past_due: 1 })
  })

  test('does not report a schedule that another transaction has locked, but compares it again', async () => {
    const pipeline = await pipelineAt('2026-11-14T09:00:00Z')
    const worker = pipeline.worker()
    await pipeline.create(EVERY_QUARTER)
    await pipeline.pass(5 * MINUTE, worker)
    await sql`
      update carillon.schedules set due_at = '2026-11-14T09:00Z', next_slot_at = '2026-11-14T09:00Z', run_count = 5`.execute(
      pipeline.db,
    )

    // As a begin that has not committed yet.
    await whileHeld(pipeline, 'select from carillon.schedules for update', async () => {
      expect(foundBy(await auditorOf(pipeline).audit())).toEqual({})
    })

    expect(foundBy(await auditorOf(pipeline).audit())).toEqual({ schedule_past_due: 1, count_wrong: 1 })
  })

  test('does not report a project as damaged that is purged in portions', async () => {
    const pipeline = await pipelineAt('2026-11-14T09:00:00Z')
    const worker = pipeline.worker()
    const schedule = await pipeline.create()
    await pipeline.pass(3 * MINUTE, worker)
    await worker.runDue()
    await pipeline.scheduler.delete(CALLER, schedule.id)

    // As a purge leaves a schedule between two portions.
    await sql`delete from carillon.schedule_revisions where schedule_id = ${schedule.id}`.execute(pipeline.db)
    expect(foundBy(await auditorOf(pipeline).audit())).toEqual({})
    await sql`delete from carillon.attempts where schedule_id = ${schedule.id}`.execute(pipeline.db)
    expect(foundBy(await auditorOf(pipeline).audit())).toEqual({})
  })

  test('does not check lines of an older version by the rules of this version', async () => {
    const pipeline = await pipelineAt('2026-11-14T09:00:00Z')
    const { db, clock } = pipeline
    const worker = pipeline.worker()
    const schedule = await pipeline.create()
    await pipeline.pass(MINUTE, worker)
    await worker.runDue()
    await sql`
      with gone as (delete from carillon.attempts)
      update carillon.runs set state = 'failed', reason = 'superseded', attempt_count = 0`.execute(db)
    await sql`update carillon.schedules set failure_count = 7`.execute(db)
    await sql`
      insert into carillon.service_turns (name, next_at, cursor)
      values ('audit', now(), json_build_object('legacyUntil', ${clock.instant}::bigint))`.execute(db)

    expect(foundBy(await auditorOf(pipeline).audit())).toEqual({})

    await pipeline.pass(MINUTE, worker)
    await worker.runDue()
    await sql`update carillon.runs set state = 'skipped', reason = 'missed' where scheduled_for = '2026-11-14T09:02Z'`.execute(
      db,
    )
    expect(foundBy(await auditorOf(pipeline).audit())).toEqual({ run_contradicted: 1 })
    expect(await pipeline.lines(schedule)).toEqual(['09:01 failed superseded', '09:02 skipped missed'])
  })

  test('reports a run whose worker has no row at once if it was requested, and later if it is continuous', async () => {
    const pipeline = await pipelineAt('2026-11-14T09:00:00Z')
    const worker = pipeline.worker()
    const cadence = { kind: 'cron', expression: '1 9 * * *', timezone: 'UTC' }
    await pipeline.create({ cadence, target: { kind: 'test', timeoutSeconds: 86_400 } })
    const { script, answer } = held()
    pipeline.target.script = script
    await pipeline.pass(MINUTE, worker)
    await worker.startDue()
    await pipeline.pass(5 * MINUTE, worker)
    // As if the worker had stopped without handing the run back.
    await sql`update carillon.runs set worker_id = ${randomUUID()} where state = 'running'`.execute(pipeline.db)
    const auditor = auditorOf(pipeline)
    const foundContinuously = async (): Promise<unknown> => {
      const counts = await auditor.runOnce()
      return counts === undefined ? 'not its turn' : [counts.isWhole, foundBy(counts)]
    }

    expect(await foundContinuously()).toEqual([true, {}])
    expect(foundBy(await auditorOf(pipeline).audit())).toEqual({ run_without_lease: 1 })
    pipeline.clock.advance(2 * MINUTE)
    expect(await foundContinuously()).toEqual([true, { run_without_lease: 1 }])
    answer(SUCCEEDED)
    await worker.loop.whenIdle()
  })
})

describe('a slot that came due recently', () => {
  test('is compared within ten minutes, without the full audit', async () => {
    const pipeline = await pipelineAt('2026-11-14T09:00:00Z')
    const worker = pipeline.worker()
    const schedule = await pipeline.create(EVERY_QUARTER)
    const auditor = auditorOf(pipeline)
    await postponeFull(pipeline)
    expect(await passAudited(pipeline, 15 * MINUTE, worker, auditor)).toEqual({})
    await removeLine(pipeline, schedule, '2026-11-14T09:15:00Z')

    expect(await passAudited(pipeline, 10 * MINUTE, worker, auditor)).toEqual({ slot_lost: 1 })

    expect(await pipeline.lines(schedule)).toEqual(['09:15 succeeded'])
    expect(await pipeline.scheduler.latestAudit()).toMatchObject({ isWhole: false, findings: 1, repaired: 1 })
  })

  test('is compared even if its schedule has a slot every minute', async () => {
    const pipeline = await pipelineAt('2026-11-14T09:00:00Z')
    const { db } = pipeline
    const worker = pipeline.worker()
    await pipeline.create()
    const auditor = auditorOf(pipeline)
    await postponeFull(pipeline)
    let removed = 0
    let found = 0

    for (let minutes = 0; minutes < 30; minutes += 1) {
      found += (await passAudited(pipeline, MINUTE, worker, auditor))['slot_lost'] ?? 0
      const { rows } = await sql`
        delete from carillon.runs
        where scheduled_for = date_trunc('minute', ${pipeline.clock.databaseNow()}::timestamptz)
        returning id`.execute(db)
      removed += rows.length
    }
    found += (await passAudited(pipeline, 5 * MINUTE, worker, auditor))['slot_lost'] ?? 0

    expect(removed).toBe(30)
    expect(found).toBe(30)
  })

  test('is compared after an edit that moves it to a part of the agenda that the auditor has read already', async () => {
    const pipeline = await pipelineAt('2026-11-14T09:00:00Z')
    const worker = pipeline.worker()
    const schedule = await pipeline.create({ cadence: { kind: 'cron', expression: '0 0 * * *', timezone: 'UTC' } })
    const auditor = auditorOf(pipeline)
    await postponeFull(pipeline)
    await passAudited(pipeline, 5 * MINUTE, worker, auditor)
    await pipeline.scheduler.edit(
      CALLER,
      schedule.id,
      { cadence: { kind: 'cron', expression: '6 9 * * *', timezone: 'UTC' } },
      { revision: 1 },
    )
    await passAudited(pipeline, MINUTE, worker, auditor)
    await removeLine(pipeline, schedule, '2026-11-14T09:06:00Z')

    expect(await passAudited(pipeline, 10 * MINUTE, worker, auditor)).toEqual({ slot_lost: 1 })
  })

  test('is compared after a change of its schedule, but not after a run-now, which changes no slot', async () => {
    const pipeline = await pipelineAt('2026-11-14T09:00:00Z')
    const { scheduler } = pipeline
    const schedule = await pipeline.create({ cadence: { kind: 'cron', expression: '0 0 * * *', timezone: 'UTC' } })
    const auditor = auditorOf(pipeline)
    await postponeFull(pipeline)
    await auditor.runOnce()
    const comparedWithin = async (minutes: number): Promise<number> => {
      let compared = 0
      for (let steps = 4 * minutes; steps > 0; steps -= 1) {
        pipeline.clock.advance(15_000)
        compared += (await auditor.runOnce())?.schedules ?? 0
      }
      return compared
    }

    const { id } = await scheduler.runNow(CALLER, schedule.id)
    await scheduler.cancel(CALLER, id)
    expect(await comparedWithin(10)).toBe(0)
    await scheduler.pause(CALLER, schedule.id, { reason: 'a holiday' })
    expect(await comparedWithin(10)).toBe(1)
  })

  test('is compared when it comes due by its spread, up to an hour after its nominal instant', async () => {
    const pipeline = await pipelineAt('2026-11-14T08:59:00Z')
    const worker = pipeline.worker()
    const hourly = { kind: 'cron', expression: '0 * * * *', timezone: 'UTC' }
    const schedules = []
    for (let n = 0; n < 8; n += 1) {
      schedules.push(await pipeline.create({ cadence: hourly, policy: { spreadSeconds: 3600 } }))
    }
    const auditor = auditorOf(pipeline)
    await postponeFull(pipeline)
    let found = 0

    for (let minutes = 0; minutes < 75; minutes += 1) {
      found += (await passAudited(pipeline, MINUTE, worker, auditor))['slot_lost'] ?? 0
      await sql`delete from carillon.runs where scheduled_for = '2026-11-14T09:00Z' and begun_at >= ${new Date(pipeline.clock.instant - MINUTE)}`.execute(
        pipeline.db,
      )
    }

    expect(found).toBe(8)
  })

  test('reduces the lag of the audit once it is compared, also for another worker', async () => {
    const pipeline = await pipelineAt('2026-11-14T09:00:00Z')
    const worker = pipeline.worker()
    await pipeline.create()
    const [one, other] = [auditorOf(pipeline), auditorOf(pipeline)]
    await one.runOnce()
    await postponeFull(pipeline)
    await passAudited(pipeline, 10 * MINUTE, worker, one)

    const reachedAt = (await turnOf(pipeline)).reached_at?.getTime() ?? 0
    // A slot is compared two minutes after it came due.
    const behindMs = pipeline.clock.instant - reachedAt
    expect([behindMs >= 0, behindMs <= 3 * MINUTE]).toEqual([true, true])
    expect(await other.runOnce()).toBeUndefined()
    expect(other.lagMs).toBe(behindMs)

    // The worker dies. No worker audits now, and both report the growing lag.
    await pipeline.pass(30 * MINUTE, worker)
    expect([one.lagMs, other.lagMs]).toEqual([behindMs + 30 * MINUTE, behindMs + 30 * MINUTE])
    // The other worker does not know what came due meanwhile, so the lag stays until a full audit has compared it.
    expect(await other.runOnce()).toBeDefined()
    expect(other.lagMs).toBe(behindMs + 30 * MINUTE)
    await passAudited(pipeline, 5 * MINUTE, worker, other)
    expect(other.lagMs).toBe(behindMs + 35 * MINUTE)
    await pipeline.scheduler.requestAudit()
    expect(await other.runOnce()).toMatchObject({ isWhole: true })
    expect(other.lagMs).toBeLessThan(3 * MINUTE)
  })
})

test('while the list is full the reached instant stays, until a full audit that began later has finished', async () => {
  const pipeline = await pipelineAt('2026-11-14T09:14:00Z')
  const { workerDb: db, clock } = pipeline
  for (let n = 0; n < 3; n += 1) await pipeline.create(EVERY_QUARTER)
  const slots = new SlotAudit({ db, clock })
  const recent = new RecentAudit({ db, clock, slots }, 2)
  const fullAt = clock.instant
  const dueAt = fullAt + MINUTE

  await recent.listComingDue(fullAt, fullAt)
  clock.advance(30 * MINUTE)
  await recent.compare(clock.instant)

  expect(recent.reachedAt(clock.instant, null)).toBe(fullAt)
  recent.commit(fullAt - 1)
  expect(recent.reachedAt(clock.instant, null)).toBe(fullAt)
  // This audit began before the slot that did not fit on the list came due.
  recent.commit(dueAt - 1)
  expect(recent.reachedAt(clock.instant, null)).toBe(dueAt - 1)
  expect(recent.reachedAt(clock.instant, dueAt)).toBeGreaterThan(dueAt)
  recent.commit(dueAt)
  expect(recent.reachedAt(clock.instant, null)).toBeGreaterThan(dueAt)
})

describe('the full audit', () => {
  /** A database on which each statement takes `statementMs` of the manual clock. */
  function slowDb({ clock, database }: Pipeline, statementMs: number): Db {
    const pool = createPool({ connectionString: database.url, role: 'carillon_worker' })
    return watchedDb(pool, () => clock.advance(statementMs))
  }

  test('continues page by page: a slice ends after 50 ms, and the auditor rests for 99 times as long', async () => {
    const pipeline = await pipelineAt('2026-11-14T09:00:00Z')
    const { clock } = pipeline
    await createCopies(pipeline, 999, EVERY_QUARTER)
    const db = slowDb(pipeline, 5)
    const auditor = auditorOf(pipeline, db)

    const slices: AuditCounts[] = []
    const shares: number[] = []
    while (!slices.some(({ isWhole }) => isWhole)) {
      const startedAt = clock.instant
      const counts = await auditor.runOnce()
      const tookMs = clock.instant - startedAt
      if (counts === undefined) throw new Error('expected the auditor to have the turn')
      slices.push(counts)
      clock.advance((await turnOf(pipeline)).next_at.getTime() - clock.instant)
      shares.push(tookMs / (clock.instant - startedAt))
    }

    expect(slices.map(({ schedules }) => schedules)).toEqual([200, 200, 200, 200, 200, 0])
    // The statements that claim and store the turn add to the time of the slice itself.
    for (const share of shares) expect(share).toBeLessThan(0.015)
    expect(await pipeline.scheduler.latestAudit()).toMatchObject({ isWhole: true, schedules: 1000, findings: 0 })
    await db.close()
  })

  test('rests for two minutes at most, however long a slice waited for Postgres', async () => {
    const pipeline = await pipelineAt('2026-11-14T09:00:00Z')
    const { clock } = pipeline
    await createCopies(pipeline, 999, EVERY_QUARTER)
    const db = slowDb(pipeline, 5000)
    const auditor = auditorOf(pipeline, db)
    await auditor.runOnce()
    const [after] = (
      await sql<{ rest_until: number }>`
      select (cursor ->> 'restUntil')::float8 as rest_until from carillon.service_turns where name = 'audit'`.execute(
        pipeline.db,
      )
    ).rows

    expect(after?.rest_until).toBeGreaterThan(0)
    expect((after?.rest_until ?? Infinity) - clock.instant).toBeLessThan(2 * MINUTE)
    await db.close()
  })

  test('replaces the one in progress if it is requested, and then does not rest', async () => {
    const pipeline = await pipelineAt('2026-11-14T09:00:00Z')
    const { clock } = pipeline
    await createCopies(pipeline, 999, EVERY_QUARTER)
    const db = slowDb(pipeline, 5)
    const auditor = auditorOf(pipeline, db)
    await auditor.runOnce()
    expect((await turnOf(pipeline)).cursor.full).toMatchObject({ requestedAt: null })

    const requestedAt = await pipeline.scheduler.requestAudit()
    expect(await auditor.runOnce()).toMatchObject({ isWhole: true, schedules: 1000 })

    expect(await pipeline.scheduler.latestAudit()).toMatchObject({ schedules: 1000 })
    expect((await pipeline.scheduler.latestAudit())?.startedAt).toBeGreaterThanOrEqual(requestedAt)
    expect(await turnOf(pipeline)).toMatchObject({ requested_at: null, cursor: { full: null } })
    expect(clock.waiting).toBe(0)
    await db.close()
  })

  test('continues where another worker stopped', async () => {
    const pipeline = await pipelineAt('2026-11-14T09:00:00Z')
    await createCopies(pipeline, 999, EVERY_QUARTER)
    const db = slowDb(pipeline, 5)
    const [one, other] = [auditorOf(pipeline, db), auditorOf(pipeline, db)]
    await one.runOnce()
    const { cursor } = await turnOf(pipeline)
    pipeline.clock.advance(10 * MINUTE)

    expect(await other.runOnce()).toMatchObject({ schedules: 200, isWhole: false })

    const { scheduleId = '' } = (await turnOf(pipeline)).cursor.full?.next.at ?? {}
    expect(scheduleId > (cursor.full?.next.at.scheduleId ?? '')).toBe(true)
    await db.close()
  })

  test('begins again two minutes after it ended', async () => {
    const pipeline = await pipelineAt('2026-11-14T09:00:00Z')
    const { clock } = pipeline
    const auditor = auditorOf(pipeline)
    expect(await auditor.runOnce()).toMatchObject({ isWhole: true })

    clock.advance(2 * MINUTE - 1)
    expect(await auditor.runOnce()).toMatchObject({ isWhole: false })
    clock.advance(15_000)
    expect(await auditor.runOnce()).toMatchObject({ isWhole: true })
  })

  test('lists a fault once, however often it finds it, with the instant at which it first found it', async () => {
    const pipeline = await pipelineAt('2026-11-14T09:00:00Z')
    const { clock, scheduler } = pipeline
    const worker = pipeline.worker()
    await pipeline.create()
    await pipeline.pass(MINUTE, worker)
    await worker.runDue()
    await sql`delete from carillon.attempts`.execute(pipeline.db)
    const firstAt = clock.instant
    await auditorOf(pipeline).audit()
    await pipeline.pass(30_000, worker)
    await auditorOf(pipeline).audit()

    expect(await scheduler.findings(CALLER)).toMatchObject([
      {
        kind: 'attempt_missing',
        foundAt: firstAt,
        seenAt: clock.instant,
        auditId: (await scheduler.latestAudit())?.id,
      },
    ])
  })

  test.each(['the same worker', 'another worker'])(
    'counts a lasting fault once, also while the next full audit of %s finds it again',
    async (by) => {
      const pipeline = await pipelineAt('2026-11-14T09:00:00Z')
      const { clock, scheduler } = pipeline
      const worker = pipeline.worker()
      await pipeline.create()
      await pipeline.pass(MINUTE, worker)
      await worker.runDue()
      await createCopies(pipeline, 999, { cadence: { kind: 'cron', expression: '0 0 1 1 *', timezone: 'UTC' } })
      await sql`delete from carillon.attempts`.execute(pipeline.db)
      const db = slowDb(pipeline, 5)
      const one = auditorOf(pipeline, db)
      while ((await one.runOnce())?.isWhole !== true) clock.advance(15_000)
      expect(await scheduler.latestAudit()).toMatchObject({ isWhole: true, findings: 1 })
      clock.advance(5 * MINUTE)
      await worker.runDue()

      const next = by === 'the same worker' ? one : auditorOf(pipeline, db)
      const slice = await next.runOnce()

      expect(slice).toMatchObject({ isWhole: false, findings: { attempt_missing: 1 } })
      expect(await scheduler.latestAudit()).toMatchObject({ isWhole: true, findings: 1 })
      expect(await scheduler.findings(CALLER)).toHaveLength(1)
      await db.close()
    },
  )

  test('counts the findings since its end as its own', async () => {
    const pipeline = await pipelineAt('2026-11-14T09:00:00Z')
    const worker = pipeline.worker()
    const schedule = await pipeline.create(EVERY_QUARTER)
    const auditor = auditorOf(pipeline)
    await auditorOf(pipeline).audit()
    await postponeFull(pipeline)
    await passAudited(pipeline, 15 * MINUTE, worker, auditor)
    expect(await pipeline.scheduler.latestAudit()).toMatchObject({ isWhole: true, findings: 0 })
    await removeLine(pipeline, schedule, '2026-11-14T09:15:00Z')
    await passAudited(pipeline, 5 * MINUTE, worker, auditor)

    expect(await pipeline.scheduler.latestAudit()).toMatchObject({ isWhole: true, findings: 1, repaired: 1 })
    // A lost slot is listed for a day.
    await auditorOf(pipeline).audit()
    expect(await pipeline.scheduler.latestAudit()).toMatchObject({ isWhole: true, findings: 1, repaired: 1 })
    pipeline.clock.advance(24 * HOUR)
    await worker.runDue()
    await auditorOf(pipeline).audit()
    expect(await pipeline.scheduler.latestAudit()).toMatchObject({ isWhole: true, findings: 0, repaired: 0 })
  })
})

describe('the cost of a slice', () => {
  /** Relations that grow with the number of schedules. */
  const LARGE = /^(schedules|schedule_changes|schedule_revisions|runs_\d{4}_\d{2}|attempts_\d{4}_\d{2}|slot_backlogs)$/

  /** Requires that large relations are read by an index with a condition, or from the first entry of an index. */
  function requireIndexed(node: PlanNode, text: string, parent?: PlanNode): void {
    const isLarge = LARGE.test(node['Relation Name'] ?? '')
    if (isLarge && node['Node Type'] !== 'Bitmap Heap Scan' && parent?.['Node Type'] !== 'Limit') {
      expect([node['Node Type'], node['Index Cond'] ?? 'none'], text).not.toContain('none')
    }
    for (const child of node.Plans ?? []) requireIndexed(child, text, node)
  }

  interface AnalyzedNode extends PlanNode {
    readonly 'Actual Rows': number
    readonly 'Actual Loops': number
    readonly 'Rows Removed by Filter'?: number
  }

  /** The number of rows that a statement reads from tables, including those that it filters out. */
  async function rowsRead(db: Db, { text, parameters }: Statement): Promise<number> {
    const rows = await db.run({ text: `explain (analyze, format json) ${text}`, parameters })
    const nodes = (rows as ExplainRow[]).flatMap((row) => nodesOf(row['QUERY PLAN'][0].Plan)) as AnalyzedNode[]
    return nodes
      .filter((node) => node['Relation Name'] !== undefined)
      .reduce(
        (sum, node) => sum + (node['Actual Rows'] + (node['Rows Removed by Filter'] ?? 0)) * node['Actual Loops'],
        0,
      )
  }

  test('is bounded by what came due and one page, which it reads by index among twenty thousand schedules', async () => {
    const pipeline = await pipelineAt('2026-11-14T09:00:00Z', ANY_NUMBER)
    const { db: admin, database, clock } = pipeline
    await createCopies(pipeline, 20_000, { cadence: { kind: 'cron', expression: '0 12 * * *', timezone: 'UTC' } })
    await createCopies(pipeline, 99, EVERY_QUARTER)
    await sql`update carillon.schedules set lane = 'test.' || (hashtext(id::text) & 63)`.execute(admin)
    await sql`analyze`.execute(admin)
    const pool = createPool({ connectionString: database.url, role: 'carillon_worker' })
    const { db, queries } = recordingDb(pool)
    const auditor = new TestAuditor({ db, clock, events: pipeline.events })
    await postponeFull(pipeline)
    clock.advance(14 * MINUTE)
    await auditor.runOnce()
    const worker = pipeline.worker()
    await pipeline.pass(4 * MINUTE, worker)
    await worker.runDue()
    await sql`update carillon.service_turns set cursor = json_build_object('changeId', cursor ->> 'changeId'), next_at = '2000-01-01' where name = 'audit'`.execute(
      admin,
    )
    queries.splice(0)

    // The slice compares recent slots, then pages of the full audit. The clock stands still, so no time limit ends the pages.
    const counts = await auditor.runOnce()
    const recent = queries.slice(
      0,
      queries.findIndex(({ text }) => text.includes('candidates')),
    )
    const page = queries.slice(
      recent.length,
      queries.findIndex(({ text }, at) => at > recent.length && text.includes('candidates')),
    )

    expect(counts).toMatchObject({ schedules: 100 + 20_101 })
    // The statements: claim, changes, agenda, time, begin, schedules, backlogs, lines, commit.
    expect(recent.length).toBeLessThanOrEqual(10)
    expect(page.length).toBeLessThanOrEqual(14)
    const read: number[] = []
    for (const query of [...recent, ...page].filter(({ text }) => /^\s*(with|select)/.test(text))) {
      for (const plan of await plansOf(pipeline.workerDb, query)) requireIndexed(plan, query.text)
      read.push(await rowsRead(pipeline.workerDb, query))
    }
    // For recent slots the agenda gives the hundred schedules that are due and one entry for each of 64 lanes, and no more.
    expect(read.slice(0, 6)).toEqual(read.slice(0, 6).map((rows) => Math.min(rows, 500)))
    // For a page: 200 schedules, each with its change, revision, runs and attempts.
    expect(read.slice(6)).toEqual(read.slice(6).map((rows) => Math.min(rows, 2000)))
    await db.close()
  })

  test.each([true, false])(
    'does not grow with the runs that callers requested or cancelled (statements planned once: %o)',
    async (isPrepared) => {
      const pipeline = await pipelineAt('2026-11-14T09:00:00Z', ANY_NUMBER)
      const { db: admin, database, clock } = pipeline
      const { id } = await pipeline.create(EVERY_QUARTER)
      await sql`
        insert into carillon.schedule_changes (
          schedule_id, tenant_id, project_id, change, revision, next_slot_at, scheduled_for, actor_subject, changed_at
        )
        select schedule_id, tenant_id, project_id, 'run_requested', revision, next_slot_at, changed_at, actor_subject, changed_at
        from carillon.schedule_changes, generate_series(1, 20000)
        where schedule_id = ${id}`.execute(admin)
      await pipeline.scheduler.pause(CALLER, id, { reason: 'a holiday' })
      await sql`analyze carillon.schedule_changes`.execute(admin)
      const role = 'carillon_worker'
      const db = createDb(createPool({ connectionString: database.url, role, isPrepared, maxConnections: 1 }))
      onTestFinished(() => db.close())
      const window = { from: new Date(clock.instant - HOUR), to: new Date(clock.instant + HOUR) }
      let spans = 0

      const read = await transact(db, clock, (tx) =>
        countRowsReadIn(tx, 'schedule_changes', async () => {
          const [audited] = await listAuditedSchedules(tx, { ids: [id], ...window })
          spans = audited?.spans.length ?? 0
        }),
      )

      expect(spans).toBe(1)
      // The lines of the create and of the pause.
      expect(read).toBe(2)
    },
  )
})

test('an audit that is requested while no worker runs is done by the next worker that starts', async () => {
  const pipeline = await pipelineAt('2026-11-14T09:00:00Z')
  const requestedAt = await pipeline.scheduler.requestAudit()
  await pipeline.scheduler.requestAudit()
  pipeline.clock.advance(HOUR)

  expect(await auditorOf(pipeline).runOnce()).toMatchObject({ isWhole: true })

  expect((await pipeline.scheduler.latestAudit())?.startedAt).toBe(requestedAt + HOUR)
  expect((await turnOf(pipeline)).requested_at).toBeNull()
})
