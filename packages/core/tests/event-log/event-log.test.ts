import pg from 'pg'
import { describe, expect, test } from 'vitest'

import { createDb } from '../../src/db/database.ts'
import { transactScoped } from '../../src/db/transact.ts'
import { positionOf } from '../../src/event-log/cursor.ts'
import { EventLog, type EventLogEntry } from '../../src/event-log/event-log.ts'
import { deleteEventLogEntries, listEventLogItems } from '../../src/event-log/store/event-log.ts'
import { systemClock } from '../../src/kernel/clock.ts'
import { Events } from '../../src/kernel/events.ts'
import type { Caller } from '../../src/kernel/scope.ts'
import { Upkeep } from '../../src/maintenance/upkeep.ts'
import { createDatabase } from '../database.ts'
import { emptiedPipelines } from '../emptied-pipeline.ts'
import { ManualClock } from '../manual-clock.ts'
import { ownLease } from '../own-lease.ts'
import { CALLER, HOUR, MINUTE, type Pipeline } from '../pipeline.ts'
import { nodesOf, plansOf, recordingDb } from '../query-plan.ts'
import { sql } from '../sql.ts'

const emptied = emptiedPipelines()
const START = '2026-03-02T09:00:30Z'

/** A pipeline with an empty event log. Entries of the previous test may have become readable only now, and are deleted. */
async function pipelineAt(now: string): Promise<Pipeline> {
  const pipeline = await emptied(now)
  await sql`delete from carillon.feed_entries`.execute(pipeline.db)
  return pipeline
}

/**
 * Reads until this many entries have arrived. A committed entry may not be readable at once, because other tests may have older
 * transactions open in other databases of the same server.
 */
async function follow(
  log: EventLog,
  after: string,
  p: { count: number; limit?: number; caller?: Caller },
): Promise<{ entries: EventLogEntry[]; cursor: string }> {
  const { count, limit = 100, caller = CALLER } = p
  const entries: EventLogEntry[] = []
  let cursor = after
  while (entries.length < count) {
    const page = await log.read(caller, cursor, { limit })
    expect(page.isExpired).toBe(false)
    expect(page.entries.length).toBeLessThanOrEqual(limit)
    entries.push(...page.entries)
    cursor = page.cursor
  }
  return { entries, cursor }
}

function changeOf(entry: EventLogEntry): string {
  return entry.kind === 'run' ? `run ${entry.change}` : `schedule ${entry.change}`
}

/** A connection that writes one change of a schedule, in a transaction that the test begins and ends. */
class Writer implements AsyncDisposable {
  readonly #client: pg.Client
  readonly #scheduleId: string
  readonly #change: string

  private constructor(client: pg.Client, scheduleId: string, change: string) {
    this.#client = client
    this.#scheduleId = scheduleId
    this.#change = change
  }

  static async connect({ database }: Pipeline, scheduleId: string, change: string): Promise<Writer> {
    const client = new pg.Client({ connectionString: database.url })
    await client.connect()
    return new Writer(client, scheduleId, change)
  }

  /** Begins the transaction and assigns its id. */
  async begin(): Promise<void> {
    await this.#client.query('begin')
    await this.#client.query('select pg_current_xact_id()')
  }

  /** Writes the change, which assigns the id of its entry. */
  async note(): Promise<void> {
    await this.#client.query(
      `insert into carillon.schedule_changes (
         schedule_id, tenant_id, project_id, change, revision, actor_subject, changed_at
       )
       values ($1, 'acme', 'web', $2, 1, 'user:alice', now())`,
      [this.#scheduleId, this.#change],
    )
  }

  async commit(): Promise<void> {
    await this.#client.query('commit')
  }

  async rollback(): Promise<void> {
    await this.#client.query('rollback')
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#client.end()
  }
}

test('the log lists every change of schedules and runs in order, each with the current record', async () => {
  const pipeline = await pipelineAt(START)
  const { db, clock, scheduler } = pipeline
  const log = new EventLog({ db })
  const tail = await log.tail()

  const schedule = await pipeline.create()
  clock.advance(MINUTE / 2)
  await pipeline.worker().runDue()
  await scheduler.pause(CALLER, schedule.id, { reason: 'a holiday' })
  const { entries } = await follow(log, tail, { count: 4 })

  expect(entries.map(changeOf)).toEqual(['schedule created', 'run running', 'run succeeded', 'schedule paused'])
  const now = await scheduler.get(CALLER, schedule.id)
  const [run] = await pipeline.ledger(schedule)
  expect(entries.map((entry) => (entry.kind === 'run' ? entry.run : entry.schedule))).toEqual([now, run, run, now])
  expect(run).toMatchObject({ state: 'succeeded' })

  await scheduler.delete(CALLER, schedule.id)
  const { entries: again } = await follow(log, tail, { count: 5 })
  expect(again.at(-1)).toMatchObject({ change: 'deleted', scheduleId: schedule.id, schedule: null })
  expect(again[0]).toMatchObject({ change: 'created', schedule: null })
})

test('a run-now and a cancel are changes of the run and of its schedule', async () => {
  const pipeline = await pipelineAt(START)
  const { db, scheduler } = pipeline
  const log = new EventLog({ db })
  const schedule = await pipeline.create()
  const tail = await log.tail()

  const { id } = await scheduler.runNow(CALLER, schedule.id)
  await scheduler.cancel(CALLER, id)
  const { entries } = await follow(log, tail, { count: 4 })

  expect(entries.map(changeOf)).toEqual([
    'run pending',
    'schedule run_requested',
    'run cancelled',
    'schedule run_cancelled',
  ])
})

test('a read from the tail returns only entries that are committed later', async () => {
  const pipeline = await pipelineAt(START)
  const log = new EventLog({ db: pipeline.db })
  const before = await log.tail()
  await pipeline.create()
  await follow(log, before, { count: 1 })

  const tail = await log.tail()
  const later = await pipeline.create()

  const { entries } = await follow(log, tail, { count: 1 })
  expect(entries).toMatchObject([{ kind: 'schedule', change: 'created', scheduleId: later.id }])
})

test('an entry with a smaller id that is committed last is not skipped', async () => {
  const pipeline = await pipelineAt(START)
  const log = new EventLog({ db: pipeline.db })
  const start = await log.tail()
  const { id } = await pipeline.create()
  const { cursor } = await follow(log, start, { count: 1 })
  await using slow = await Writer.connect(pipeline, id, 'edited')
  await using quick = await Writer.connect(pipeline, id, 'resumed')
  await slow.begin()
  await slow.note()
  await quick.begin()
  await quick.note()
  await quick.commit()

  const early = await log.read(CALLER, cursor)
  expect(early.entries).toEqual([])
  await slow.commit()
  const { entries } = await follow(log, early.cursor, { count: 2 })

  expect(entries.map(changeOf)).toEqual(['schedule edited', 'schedule resumed'])
})

test('the tail lies before the entries of open transactions, whatever their ids', async () => {
  const pipeline = await pipelineAt(START)
  const log = new EventLog({ db: pipeline.db })
  const start = await log.tail()
  const { id } = await pipeline.create()
  await follow(log, start, { count: 1 })
  await using writer = await Writer.connect(pipeline, id, 'edited')
  await writer.begin()
  await writer.note()

  const tail = await log.tail()
  await writer.commit()

  const { entries } = await follow(log, tail, { count: 1 })
  expect(entries.map(changeOf)).toEqual(['schedule edited'])
})

/** All orders in which `a` steps of one sequence and `b` steps of another can be executed. */
function interleavings(a: number, b: number): ('first' | 'second')[][] {
  if (a + b === 0) return [[]]
  return [
    ...(a > 0 ? interleavings(a - 1, b).map((rest) => ['first' as const, ...rest]) : []),
    ...(b > 0 ? interleavings(a, b - 1).map((rest) => ['second' as const, ...rest]) : []),
  ]
}

test('a reader that polls one entry after every step reads each entry once, however two transactions interleave', async () => {
  const pipeline = await pipelineAt(START)
  const log = new EventLog({ db: pipeline.db })
  const start = await log.tail()
  const { id } = await pipeline.create()
  let { cursor } = await follow(log, start, { count: 1 })
  await using first = await Writer.connect(pipeline, id, 'edited')
  await using second = await Writer.connect(pipeline, id, 'resumed')

  for (const order of interleavings(3, 3)) {
    const steps = {
      first: [() => first.begin(), () => first.note(), () => first.commit()],
      second: [() => second.begin(), () => second.note(), () => second.commit()],
    }
    const read: string[] = []
    for (const writer of order) {
      await steps[writer].shift()?.()
      const page = await log.read(CALLER, cursor, { limit: 1 })
      read.push(...page.entries.map(changeOf))
      cursor = page.cursor
    }
    const rest = await follow(log, cursor, { count: 2 - read.length, limit: 1 })
    cursor = rest.cursor
    read.push(...rest.entries.map(changeOf))

    expect(read.toSorted(), order.join(' ')).toEqual(['schedule edited', 'schedule resumed'])
  }
})

test('an entry that is rolled back is not read, and the gap in the ids does not expire the cursor', async () => {
  const pipeline = await pipelineAt(START)
  const log = new EventLog({ db: pipeline.db })
  const start = await log.tail()
  const { id } = await pipeline.create()
  const { cursor } = await follow(log, start, { count: 1 })
  await using writer = await Writer.connect(pipeline, id, 'edited')
  await writer.begin()
  await writer.note()
  await writer.rollback()
  const later = await pipeline.create()

  const { entries } = await follow(log, cursor, { count: 1 })

  expect(entries).toMatchObject([{ change: 'created', scheduleId: later.id }])
})

test('a reader can stop at any run of a batch and continue after it, and the limit counts runs', async () => {
  const pipeline = await pipelineAt(START)
  const { db, clock } = pipeline
  const log = new EventLog({ db })
  const start = await log.tail()
  for (let at = 0; at < 7; at += 1) await pipeline.create()
  const { cursor: tail } = await follow(log, start, { count: 7 })
  clock.advance(MINUTE / 2)
  await pipeline.worker().runDue()
  const { rows } = await sql<{ most: number }>`
    select max(cardinality(changes)) as most from carillon.feed_entries where kind = 'run'`.execute(db)
  expect(rows).toEqual([{ most: 7 }])

  const { entries } = await follow(log, tail, { count: 14, limit: 3 })

  const runs = entries.map((entry) => (entry.kind === 'run' ? `${entry.run.id} ${entry.change}` : changeOf(entry)))
  expect(new Set(runs).size).toBe(14)
  expect(entries.slice(0, 7).every(({ change }) => change === 'running')).toBe(true)
  expect(entries.slice(7).every(({ change }) => change === 'succeeded')).toBe(true)
  for (const [at, { cursor }] of entries.entries()) {
    expect((await log.read(CALLER, cursor)).entries).toEqual(entries.slice(at + 1))
  }
})

test('a reader sees no entry of another project or tenant (I9), but its cursor still advances', async () => {
  const pipeline = await pipelineAt(START)
  const log = new EventLog({ db: pipeline.db })
  const tail = await log.tail()
  await pipeline.create()
  pipeline.clock.advance(MINUTE / 2)
  await pipeline.worker().runDue()
  const { cursor } = await follow(log, tail, { count: 3 })

  for (const caller of [
    { ...CALLER, tenantId: 'evil' },
    { ...CALLER, projectId: 'mobile' },
  ]) {
    const page = await log.read(caller, tail)
    expect(page).toMatchObject({ entries: [], isExpired: false })
    expect(BigInt(positionOf(page.cursor).xactId)).toBeGreaterThanOrEqual(BigInt(positionOf(cursor).xactId))
  }
})

test('a run whose month was dropped is left out, and the reader continues after it', async () => {
  await using database = await createDatabase()
  const db = createDb(database.pool)
  const log = new EventLog({ db })
  const tail = await log.tail()
  await sql`
    insert into carillon.runs
      (schedule_id, scheduled_for, id, tenant_id, project_id, revision, trigger, state, reason, begun_at, completed_at)
    select gen_random_uuid(), '2026-03-02T09:00Z', gen_random_uuid(), 'acme', 'web', 1, 'schedule', 'skipped', 'missed', now(), now()
    from generate_series(1, 3)`.execute(db)
  await sql`drop table carillon.runs_2026_03`.execute(db)
  await sql`
    insert into carillon.runs
      (schedule_id, scheduled_for, id, tenant_id, project_id, revision, trigger, state, reason, begun_at, completed_at)
    values (
      gen_random_uuid(), '2026-04-02T09:00Z', gen_random_uuid(), 'acme', 'web', 1, 'schedule', 'skipped', 'missed', now(), now()
    )`.execute(db)

  const { entries } = await follow(log, tail, { count: 1, limit: 2 })

  expect(entries).toMatchObject([{ kind: 'run', run: { scheduledFor: Date.parse('2026-04-02T09:00Z') } }])
})

describe('a reader whose cursor is too old gets isExpired and continues at the end', () => {
  test('when entries after the cursor are deleted', async () => {
    const pipeline = await pipelineAt(START)
    const { db, workerDb } = pipeline
    const log = new EventLog({ db })
    const tail = await log.tail()
    await pipeline.create()
    const { cursor } = await follow(log, tail, { count: 1 })
    for (let at = 0; at < 3; at += 1) await pipeline.create()
    const { entries } = await follow(log, cursor, { count: 3 })
    const [first, second, third] = entries
    // The three oldest entries; only the last one stays.
    expect(await deleteEventLogEntries(workerDb, { before: new Date(Date.now() + HOUR), limit: 3 })).toBe(3)

    const page = await log.read(CALLER, cursor)

    expect(page).toMatchObject({ entries: [], isExpired: true })
    expect(await log.read(CALLER, page.cursor)).toMatchObject({ entries: [], isExpired: false })
    expect(await log.read(CALLER, String(first?.cursor))).toMatchObject({ isExpired: true })
    expect((await log.read(CALLER, String(second?.cursor))).entries).toEqual([third])
  })

  test('when the cursor comes from another database', async () => {
    const pipeline = await pipelineAt(START)
    const log = new EventLog({ db: pipeline.db })
    const { at } = positionOf(await log.tail())

    expect(await log.read(CALLER, `1-999999999-0-${at}`)).toMatchObject({ entries: [], isExpired: true })
    expect(await log.read(CALLER, `18446744073709551615-1-0-${at}`)).toMatchObject({ entries: [], isExpired: true })
  })

  test('but not when every deleted entry lies before the cursor', async () => {
    const pipeline = await pipelineAt(START)
    const { db, workerDb } = pipeline
    const log = new EventLog({ db })
    const tail = await log.tail()
    const { id } = await pipeline.create()
    for (let at = 0; at < 2; at += 1) await pipeline.create()
    const { cursor } = await follow(log, tail, { count: 3 })
    const clock = new ManualClock(Date.now() + 3 * HOUR)
    const upkeep = new Upkeep({ db: workerDb, clock, events: new Events(), lease: ownLease() })
    expect(await upkeep.runOnce()).toMatchObject({ deletedEntries: 3 })
    await using writer = await Writer.connect(pipeline, id, 'edited')
    await writer.begin()
    await writer.note()
    await writer.rollback()
    const later = await pipeline.create()

    const { entries } = await follow(log, cursor, { count: 1 })

    expect(entries).toMatchObject([{ change: 'created', scheduleId: later.id }])
  })
})

test.each([0, 501, 1.5, Number.NaN, '5'])('a limit of %s is rejected', async (limit) => {
  const pipeline = await pipelineAt(START)
  const log = new EventLog({ db: pipeline.db })

  await expect(log.read(CALLER, await log.tail(), { limit: limit as number })).rejects.toMatchObject({
    code: 'invalid_input',
    problems: [{ path: 'limit' }],
  })
})

test.each(['', 'x', "' or true --", '\0', '1-2-3'])('a text that is not a cursor is rejected: %j', async (cursor) => {
  const pipeline = await pipelineAt(START)
  const log = new EventLog({ db: pipeline.db })

  await expect(log.read(CALLER, cursor)).rejects.toMatchObject({
    code: 'invalid_input',
    problems: [{ path: 'cursor' }],
  })
})

test('a page is found by index conditions alone, among 20,000 entries of 200 projects', async () => {
  await using database = await createDatabase()
  const { pool } = database
  await pool.query(`
    insert into carillon.feed_entries (xact_id, tenant_id, project_id, kind, schedule_ids, slots, changes)
    select (n / 4)::text::xid8, 'acme', 'project-' || n % 200, 'run',
      array_fill(gen_random_uuid(), array[50]), array_fill(now(), array[50]), array_fill('running'::text, array[50])
    from generate_series(1, 20000) as n`)
  await pool.query('vacuum analyze carillon.feed_entries')
  const { db, queries } = recordingDb(pool)
  const scope = { tenantId: 'acme', projectId: 'project-7' }
  const after = { xactId: '2000', id: '8000', ordinal: 7, at: 0 }

  // Under row-level security, as the API reads: its policies must not keep Postgres from using an index.
  const plans = await transactScoped(db, systemClock, scope, async (tx) => {
    queries.length = 0
    await listEventLogItems(tx, { ...scope, after, horizon: '5001', limit: 100 })
    const [query] = queries
    if (query === undefined) throw new Error('expected a query on the event log, got none')
    return plansOf(tx, query)
  })

  expect(plans).toHaveLength(2)
  for (const plan of plans) {
    const nodes = nodesOf(plan)
    const entries = nodes.filter((node) => node['Index Name'] === 'feed_entries_project_idx')
    expect(entries).toHaveLength(1)
    expect(entries[0]?.['Index Cond']).toMatch(/tenant_id = .*project_id = .*ROW\(.*xact_id, .*id\) >= .*xact_id < /)
    // Neither the log nor the ledger is scanned completely.
    expect(nodes.filter((node) => node['Node Type'] === 'Seq Scan')).toEqual([])
  }
})
