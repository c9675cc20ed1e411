import { describe, expect, test } from 'vitest'

import type { AuditCounts } from '../../src/audit/auditor.ts'
import { findLedgerPage, type LedgerPosition } from '../../src/audit/store/ledger-pages.ts'
import { createPool } from '../../src/db/pool.ts'
import { emptiedPipelines } from '../emptied-pipeline.ts'
import { CALLER, DAY, HOUR, MINUTE, type Pipeline } from '../pipeline.ts'
import { nodesOf, plansOf, recordingDb } from '../query-plan.ts'
import { FAIL } from '../scripted-target.ts'
import { sql } from '../sql.ts'
import { TestAuditor } from '../test-auditor.ts'

const pipelineAt = emptiedPipelines()

const FIRST: LedgerPosition = { scheduleId: '00000000-0000-0000-0000-000000000000', slot: null }
const DAILY = { cadence: { kind: 'cron', expression: '0 9 * * *', timezone: 'UTC' } }

function auditorOf({ workerDb: db, clock, events }: Pipeline, linesPerPage = 5000): TestAuditor {
  return new TestAuditor({ db, clock, events }, { linesPerPage })
}

function foundBy({ findings }: AuditCounts): Record<string, number> {
  return Object.fromEntries(Object.entries(findings).filter(([, count]) => count > 0))
}

/** Schedules with 120 lines each. All but the last are skipped as missed, so no count of a schedule includes them. */
async function afterAnOutage(schedules: number): Promise<Pipeline> {
  const pipeline = await pipelineAt('2026-11-14T09:00:30Z')
  for (let n = 0; n < schedules; n += 1) await pipeline.create({ policy: { startingDeadlineSeconds: 60 } })
  pipeline.clock.advance(2 * HOUR)
  await pipeline.worker().runDue()
  return pipeline
}

describe('a page of the full audit', () => {
  test('holds no more lines than its limit, whatever the counts of its schedules, and no line is on two pages or on none', async () => {
    const pipeline = await afterAnOutage(5)
    const { db, workerDb } = pipeline
    const lines: number[] = []
    let from: LedgerPosition | null = FIRST

    while (from !== null) {
      const { next }: { next: LedgerPosition | null } = await findLedgerPage(workerDb, {
        from,
        schedules: 200,
        lines: 50,
      })
      const at = ({ scheduleId, slot }: LedgerPosition) =>
        sql`(${scheduleId}::uuid, coalesce(${slot === null ? null : new Date(slot)}, '-infinity'::timestamptz))`
      const { rows } = await sql<{ count: number }>`
        select count(*)::int as count from carillon.runs
        where (schedule_id, scheduled_for) >= ${at(from)} ${next === null ? sql`` : sql`and (schedule_id, scheduled_for) < ${at(next)}`}`.execute(
        db,
      )
      lines.push(rows[0]?.count ?? 0)
      from = next
    }

    const { rows } = await sql<{ count: number }>`select count(*)::int as count from carillon.runs`.execute(db)
    expect(rows[0]?.count).toBe(600)
    expect(lines.reduce((sum, count) => sum + count, 0)).toBe(600)
    expect(Math.max(...lines)).toBe(50)
  })

  test('ends before a slot whose attempts do not fit, and takes a slot with more attempts than its limit alone', async () => {
    const pipeline = await pipelineAt('2026-11-14T08:59:00Z')
    const { id } = await pipeline.create(DAILY)
    pipeline.clock.advance(MINUTE)
    await pipeline.worker().runDue()
    await sql`
      insert into carillon.attempts (schedule_id, scheduled_for, attempt, tenant_id, project_id, worker_id, outcome, started_at, completed_at)
      select schedule_id, scheduled_for + slot * interval '1 second', number, tenant_id, project_id, worker_id, outcome, started_at, completed_at
      from carillon.attempts, generate_series(2, 30) as number, generate_series(0, 2) as slot`.execute(pipeline.db)
    const slot = Date.parse('2026-11-14T09:00:00Z')
    const pageFrom = (from: LedgerPosition) => findLedgerPage(pipeline.workerDb, { from, schedules: 200, lines: 20 })

    expect(await pageFrom({ scheduleId: id, slot: null })).toEqual({
      scheduleIds: [id],
      next: { scheduleId: id, slot },
    })
    expect(await pageFrom({ scheduleId: id, slot })).toEqual({
      scheduleIds: [id],
      next: { scheduleId: id, slot: slot + 1 },
    })
    expect(await pageFrom({ scheduleId: id, slot: slot + 1 })).toMatchObject({ next: { slot: slot + 1000 } })
  })

  test('splits only a schedule with more lines than a page: any other schedule that does not fit begins the next page', async () => {
    const pipeline = await afterAnOutage(3)
    const { workerDb } = pipeline
    const ids = (await pipeline.scheduler.list(CALLER)).map(({ id }) => id).toSorted()
    const pageFrom = (from: LedgerPosition, lines: number) => findLedgerPage(workerDb, { from, schedules: 200, lines })

    const [first = '', second = '', third = ''] = ids
    expect(await pageFrom(FIRST, 250)).toEqual({
      scheduleIds: [first, second],
      next: { scheduleId: third, slot: null },
    })
    expect(await pageFrom({ scheduleId: second, slot: null }, 50)).toMatchObject({
      scheduleIds: [second],
      next: { scheduleId: second, slot: expect.any(Number) as number },
    })
  })

  test('is found and read by index, with generic plans', async () => {
    const pipeline = await afterAnOutage(5)
    const { clock, events, database } = pipeline
    // The tests before leave dead rows in the tables. Postgres sorts five rows that lie scattered over two pages, rather than follow the index.
    await database.pool.query('vacuum (full, analyze) carillon.schedules, carillon.runs, carillon.attempts')
    const { db, queries } = recordingDb(createPool({ connectionString: database.url, role: 'carillon_worker' }))
    await new TestAuditor({ db, clock, events }, { linesPerPage: 50 }).audit()
    const pages = queries.filter(({ text }) => /candidates|grouped|with open as/.test(text))

    expect(pages.length).toBeGreaterThan(12)
    for (const query of [pages[0], pages[1], pages.at(-1)]) {
      if (query === undefined) continue
      for (const plan of await plansOf(pipeline.workerDb, query)) {
        const nodes = nodesOf(plan)
        // Postgres finds a page in the order of an index, so it neither reads nor sorts what follows the page.
        if (query.text.includes('candidates')) expect(nodes.map((node) => node['Node Type'])).not.toContain('Sort')
        const scans = nodes.filter(
          (node) => node['Node Type'] !== 'Bitmap Heap Scan' && /^(runs|attempts)_\d/.test(node['Relation Name'] ?? ''),
        )
        expect(scans.map((node) => node['Node Type']).filter((type) => type === 'Seq Scan')).toEqual([])
        expect(scans.map((node) => node['Index Cond'] ?? 'none')).not.toContain('none')
      }
    }
    await db.close()
  })
})

describe('a schedule whose lines are on several pages', () => {
  test('is audited like one on a single page', async () => {
    const pipeline = await afterAnOutage(3)

    const [small, large] = [await auditorOf(pipeline, 50).audit(), await auditorOf(pipeline).audit()]

    expect(small).toEqual(large)
    expect(small).toMatchObject({ schedules: 3, slots: 360, truncated: 0, repaired: 0 })
    expect(foundBy(small)).toEqual({})
  })

  test('loses no slot between two pages, even if its spread lets slots come due after the last line of a page', async () => {
    const pipeline = await pipelineAt('2026-11-14T00:00:00Z')
    const { db } = pipeline
    const worker = pipeline.worker()
    const cadence = { kind: 'cron', expression: '*/15 * * * *', timezone: 'UTC' }
    // Enough for some to come due long after their slot, whatever their ids.
    for (let n = 0; n < 16; n += 1) await pipeline.create({ cadence, policy: { spreadSeconds: 3600 } })
    for (let quarters = 0; quarters < 16; quarters += 1) {
      pipeline.clock.advance(15 * MINUTE)
      await worker.runDue()
    }
    await sql`delete from carillon.attempts`.execute(db)
    const { rows: removed } = await sql`
      delete from carillon.runs where extract(minute from scheduled_for) = 45 returning id`.execute(db)
    expect(removed.length).toBeGreaterThan(30)

    // The last slot of each page is lost.
    expect((await auditorOf(pipeline, 3).audit()).findings.slot_lost).toBe(removed.length)
    expect((await auditorOf(pipeline, 3).audit()).findings.slot_lost).toBe(0)
  })

  test('is reported for wrong counts at once by a requested audit, and the second time by the continuous one', async () => {
    const pipeline = await afterAnOutage(1)
    const isWrong = sql`update carillon.schedules set run_count = run_count + 2`
    await isWrong.execute(pipeline.db)
    const auditor = auditorOf(pipeline, 50)

    expect([foundBy(await auditor.audit()), foundBy(await auditor.audit())]).toEqual([{ count_wrong: 1 }, {}])
    const [finding] = await pipeline.scheduler.findings(CALLER)
    expect(finding?.detail).toContain('the lines of 2 may be lost: look for them in a backup')

    await isWrong.execute(pipeline.db)
    const continuous = [await wholeAudit(pipeline, auditor), await wholeAudit(pipeline, auditor)]
    expect(continuous.map(({ count_wrong = 0 }) => count_wrong)).toEqual([0, 1])
  })

  test('is not reported for wrong counts while a run on an earlier page is open, because it may end between two pages', async () => {
    const pipeline = await afterAnOutage(1)
    await sql`
      update carillon.runs set state = 'running', attempt_count = 1, completed_at = null, reason = null, worker_id = workers.id,
        started_at = begun_at
      from carillon.workers
      where scheduled_for = (select min(scheduled_for) from carillon.runs)`.execute(pipeline.db)

    const found = foundBy(await auditorOf(pipeline, 50).audit())

    expect(found['count_wrong']).toBeUndefined()
  })
})

/** Runs the continuous audit until a full audit has finished. Returns its findings by kind. */
async function wholeAudit(pipeline: Pipeline, auditor: TestAuditor): Promise<Record<string, number>> {
  const found: Record<string, number> = {}
  for (;;) {
    pipeline.clock.advance(MINUTE)
    const counts = await auditor.runOnce()
    if (counts === undefined) continue
    for (const [kind, count] of Object.entries(foundBy(counts))) found[kind] = (found[kind] ?? 0) + count
    if (counts.isWhole) return found
  }
}

test('a line that was deleted weeks after its slot is found within the retention', async () => {
  const pipeline = await pipelineAt('2026-11-01T08:59:00Z')
  const { db, clock } = pipeline
  const worker = pipeline.worker()
  const [ran, skipped] = [await pipeline.create(DAILY), await pipeline.create(DAILY)]
  await pipeline.scheduler.skip(CALLER, skipped.id, Date.parse('2026-11-02T09:00:00Z'))
  for (let days = 0; days < 20; days += 1) {
    clock.advance(days === 0 ? MINUTE : DAY)
    await worker.runDue()
  }
  expect(foundBy(await auditorOf(pipeline).audit())).toEqual({})
  await sql`delete from carillon.runs where scheduled_for < '2026-11-03'`.execute(db)
  await sql`delete from carillon.attempts where schedule_id = ${ran.id} and scheduled_for < '2026-11-02'`.execute(db)

  const found = foundBy(await auditorOf(pipeline).audit())

  // Two lines are of runs, one of which has lost its attempt too, and two are of skipped slots.
  expect(found).toEqual({ slot_lost: 4, count_wrong: 1 })
  expect((await pipeline.lines(ran)).slice(0, 2)).toEqual(['09:00 skipped missed', '09:00 succeeded'])
  const details = (await pipeline.scheduler.findings(CALLER, { limit: 10 })).map(({ detail }) => detail)
  expect(details.filter((detail) => detail.includes('may be lost'))).toHaveLength(1)
  expect(foundBy(await auditorOf(pipeline).audit())).toEqual({})
})

test('an open run whose schedule is gone is a finding of the installation, and its detail says what to do', async () => {
  const pipeline = await pipelineAt('2026-11-14T08:59:00Z')
  const { clock, db, scheduler, target } = pipeline
  const worker = pipeline.worker()
  const { id } = await pipeline.create({
    ...DAILY,
    policy: { retry: { maxAttempts: 3, baseSeconds: 100, capSeconds: 100 } },
  })
  target.script = () => FAIL
  clock.advance(MINUTE)
  await worker.runDue()
  for (const table of ['schedule_revisions', 'schedule_changes']) {
    await sql`delete from ${sql.raw(`carillon.${table}`)} where schedule_id = ${id}`.execute(db)
  }
  await sql`delete from carillon.schedules where id = ${id}`.execute(db)

  expect(foundBy(await auditorOf(pipeline).audit())).toEqual({ run_stuck: 1 })

  const [finding] = await scheduler.unownedFindings()
  expect(finding).toMatchObject({ kind: 'run_stuck', scheduleId: id, isRepaired: false })
  expect(finding?.detail).toMatch(
    /^the run is open, and its schedule is gone, .*: restore the schedule .* or delete the run \(in Carillon's schema: delete from runs where id = '[-\da-f]{36}'\)$/,
  )
})
