import { sql } from 'kysely'
import pg from 'pg'
import { describe, expect, test } from 'vitest'

import type { Caller } from '../src/caller.ts'
import { systemClock } from '../src/clock.ts'
import { Events } from '../src/events.ts'
import { positionOf } from '../src/facade/feed-cursor.ts'
import { Feed, type FeedEntry } from '../src/facade/feed.ts'
import { Upkeep } from '../src/services/upkeep.ts'
import { createDb } from '../src/store/database.ts'
import { deleteFeedEntries, listFeedItems } from '../src/store/feed.ts'
import { transactWithin } from '../src/store/walled-transaction.ts'
import { createDatabase } from './database.ts'
import { emptiedPipelines } from './emptied-pipeline.ts'
import { ManualClock } from './manual-clock.ts'
import { CALLER, HOUR, MINUTE, type Pipeline } from './pipeline.ts'
import { nodesOf, plansOf, recordingDb } from './query-plan.ts'

const emptied = emptiedPipelines()
const START = '2026-03-02T09:00:30Z'

/** With nothing in its feed: what the test before did may not have been to be read yet. */
async function pipelineAt(now: string): Promise<Pipeline> {
  const pipeline = await emptied(now)
  await sql`delete from carillon.feed_entries`.execute(pipeline.db)
  return pipeline
}

/**
 * Reads until so many entries have come. What is committed is not to be read at once: transactions of other tests, in other
 * databases of the same server, may be older.
 */
async function follow(
  feed: Feed,
  after: string,
  p: { count: number; limit?: number; caller?: Caller },
): Promise<{ entries: FeedEntry[]; cursor: string }> {
  const { count, limit = 100, caller = CALLER } = p
  const entries: FeedEntry[] = []
  let cursor = after
  while (entries.length < count) {
    const page = await feed.read(caller, cursor, { limit })
    expect(page.isExpired).toBe(false)
    expect(page.entries.length).toBeLessThanOrEqual(limit)
    entries.push(...page.entries)
    cursor = page.cursor
  }
  return { entries, cursor }
}

function told(entry: FeedEntry): string {
  return entry.kind === 'run' ? `run ${entry.change}` : `schedule ${entry.change}`
}

/** A connection whose transaction the test holds in its hand, as somebody who changes a schedule. */
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

  /** Draws the number of its transaction. */
  async begin(): Promise<void> {
    await this.#client.query('begin')
    await this.#client.query('select pg_current_xact_id()')
  }

  /** Draws the id of its entry. */
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

test('everything that happens to schedules and runs is told in order: what it was brought to, and how it is now', async () => {
  const pipeline = await pipelineAt(START)
  const { db, clock, scheduler } = pipeline
  const feed = new Feed({ db })
  const tail = await feed.tail()

  const schedule = await pipeline.create()
  clock.advance(MINUTE / 2)
  await pipeline.worker().keep()
  await scheduler.pause(CALLER, schedule.id, { reason: 'a holiday' })
  const { entries } = await follow(feed, tail, { count: 4 })

  expect(entries.map(told)).toEqual(['schedule created', 'run running', 'run succeeded', 'schedule paused'])
  const now = await scheduler.get(CALLER, schedule.id)
  const [run] = await pipeline.ledger(schedule)
  expect(entries.map((entry) => (entry.kind === 'run' ? entry.run : entry.schedule))).toEqual([now, run, run, now])
  expect(run).toMatchObject({ state: 'succeeded' })

  await scheduler.delete(CALLER, schedule.id)
  const { entries: again } = await follow(feed, tail, { count: 5 })
  expect(again.at(-1)).toMatchObject({ change: 'deleted', scheduleId: schedule.id, schedule: null })
  expect(again[0]).toMatchObject({ change: 'created', schedule: null })
})

test('from the end of the feed only what commits later is read', async () => {
  const pipeline = await pipelineAt(START)
  const feed = new Feed({ db: pipeline.db })
  const before = await feed.tail()
  await pipeline.create()
  await follow(feed, before, { count: 1 })

  const tail = await feed.tail()
  const later = await pipeline.create()

  const { entries } = await follow(feed, tail, { count: 1 })
  expect(entries).toMatchObject([{ kind: 'schedule', change: 'created', scheduleId: later.id }])
})

test('an entry that drew the smaller id and commits last is not passed by', async () => {
  const pipeline = await pipelineAt(START)
  const feed = new Feed({ db: pipeline.db })
  const start = await feed.tail()
  const { id } = await pipeline.create()
  const { cursor } = await follow(feed, start, { count: 1 })
  await using slow = await Writer.connect(pipeline, id, 'edited')
  await using quick = await Writer.connect(pipeline, id, 'resumed')
  await slow.begin()
  await slow.note()
  await quick.begin()
  await quick.note()
  await quick.commit()

  const early = await feed.read(CALLER, cursor)
  expect(early.entries).toEqual([])
  await slow.commit()
  const { entries } = await follow(feed, early.cursor, { count: 2 })

  expect(entries.map(told)).toEqual(['schedule edited', 'schedule resumed'])
})

test('the end of the feed lies before what is under way, whatever id it has drawn', async () => {
  const pipeline = await pipelineAt(START)
  const feed = new Feed({ db: pipeline.db })
  const start = await feed.tail()
  const { id } = await pipeline.create()
  await follow(feed, start, { count: 1 })
  await using writer = await Writer.connect(pipeline, id, 'edited')
  await writer.begin()
  await writer.note()

  const tail = await feed.tail()
  await writer.commit()

  const { entries } = await follow(feed, tail, { count: 1 })
  expect(entries.map(told)).toEqual(['schedule edited'])
})

/** All ways in which two sequences of three steps can be woven into one. */
function interleavings(a: number, b: number): ('first' | 'second')[][] {
  if (a + b === 0) return [[]]
  return [
    ...(a > 0 ? interleavings(a - 1, b).map((rest) => ['first' as const, ...rest]) : []),
    ...(b > 0 ? interleavings(a, b - 1).map((rest) => ['second' as const, ...rest]) : []),
  ]
}

test('however two transactions are interleaved, a reader who looks after every step, for one entry at a time, reads each once', async () => {
  const pipeline = await pipelineAt(START)
  const feed = new Feed({ db: pipeline.db })
  const start = await feed.tail()
  const { id } = await pipeline.create()
  let { cursor } = await follow(feed, start, { count: 1 })
  await using first = await Writer.connect(pipeline, id, 'edited')
  await using second = await Writer.connect(pipeline, id, 'resumed')

  for (const order of interleavings(3, 3)) {
    const steps = {
      first: [() => first.begin(), () => first.note(), () => first.commit()],
      second: [() => second.begin(), () => second.note(), () => second.commit()],
    }
    const read: string[] = []
    for (const who of order) {
      await steps[who].shift()?.()
      const page = await feed.read(CALLER, cursor, { limit: 1 })
      read.push(...page.entries.map(told))
      cursor = page.cursor
    }
    const rest = await follow(feed, cursor, { count: 2 - read.length, limit: 1 })
    cursor = rest.cursor
    read.push(...rest.entries.map(told))

    expect(read.toSorted(), order.join(' ')).toEqual(['schedule edited', 'schedule resumed'])
  }
})

test('what is rolled back never was, and the id that it drew makes nobody believe that something was forgotten', async () => {
  const pipeline = await pipelineAt(START)
  const feed = new Feed({ db: pipeline.db })
  const start = await feed.tail()
  const { id } = await pipeline.create()
  const { cursor } = await follow(feed, start, { count: 1 })
  await using writer = await Writer.connect(pipeline, id, 'edited')
  await writer.begin()
  await writer.note()
  await writer.rollback()
  const later = await pipeline.create()

  const { entries } = await follow(feed, cursor, { count: 1 })

  expect(entries).toMatchObject([{ change: 'created', scheduleId: later.id }])
})

test('a reader can stop at any run of a herd and go on behind it; the limit counts runs', async () => {
  const pipeline = await pipelineAt(START)
  const { db, clock } = pipeline
  const feed = new Feed({ db })
  const start = await feed.tail()
  for (let at = 0; at < 7; at += 1) await pipeline.create()
  const { cursor: tail } = await follow(feed, start, { count: 7 })
  clock.advance(MINUTE / 2)
  await pipeline.worker().keep()
  const { rows } = await sql<{ most: number }>`
    select max(cardinality(changes)) as most from carillon.feed_entries where kind = 'run'`.execute(db)
  expect(rows).toEqual([{ most: 7 }])

  const { entries } = await follow(feed, tail, { count: 14, limit: 3 })

  const runs = entries.map((entry) => (entry.kind === 'run' ? `${entry.run.id} ${entry.change}` : told(entry)))
  expect(new Set(runs).size).toBe(14)
  expect(entries.slice(0, 7).every(({ change }) => change === 'running')).toBe(true)
  expect(entries.slice(7).every(({ change }) => change === 'succeeded')).toBe(true)
  for (const [at, { cursor }] of entries.entries()) {
    expect((await feed.read(CALLER, cursor)).entries).toEqual(entries.slice(at + 1))
  }
})

test('nobody sees what happens in another project or tenant (I9), but moves on all the same', async () => {
  const pipeline = await pipelineAt(START)
  const feed = new Feed({ db: pipeline.db })
  const tail = await feed.tail()
  await pipeline.create()
  pipeline.clock.advance(MINUTE / 2)
  await pipeline.worker().keep()
  const { cursor } = await follow(feed, tail, { count: 3 })

  for (const caller of [
    { ...CALLER, tenantId: 'evil' },
    { ...CALLER, projectId: 'mobile' },
  ]) {
    const page = await feed.read(caller, tail)
    expect(page).toMatchObject({ entries: [], isExpired: false })
    expect(BigInt(positionOf(page.cursor).xactId)).toBeGreaterThanOrEqual(BigInt(positionOf(cursor).xactId))
  }
})

test('a run whose month was dropped meanwhile is left out, and the reader gets past it', async () => {
  await using database = await createDatabase()
  const db = createDb(database.pool)
  const feed = new Feed({ db })
  const tail = await feed.tail()
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

  const { entries } = await follow(feed, tail, { count: 1, limit: 2 })

  expect(entries).toMatchObject([{ kind: 'run', run: { scheduledFor: Date.parse('2026-04-02T09:00Z') } }])
})

describe('who was away for too long is told so, and goes on at the end', () => {
  test('when entries behind the cursor are forgotten', async () => {
    const pipeline = await pipelineAt(START)
    const { db, workerDb } = pipeline
    const feed = new Feed({ db })
    const tail = await feed.tail()
    await pipeline.create()
    const { cursor } = await follow(feed, tail, { count: 1 })
    for (let at = 0; at < 3; at += 1) await pipeline.create()
    const { entries } = await follow(feed, cursor, { count: 3 })
    const [first, second, third] = entries
    // The oldest, all but the last one.
    expect(await deleteFeedEntries(workerDb, { before: new Date(Date.now() + HOUR), limit: 3 })).toBe(3)

    const page = await feed.read(CALLER, cursor)

    expect(page).toMatchObject({ entries: [], isExpired: true })
    expect(await feed.read(CALLER, page.cursor)).toMatchObject({ entries: [], isExpired: false })
    expect(await feed.read(CALLER, String(first?.cursor))).toMatchObject({ isExpired: true })
    expect((await feed.read(CALLER, String(second?.cursor))).entries).toEqual([third])
  })

  test('when the cursor is of another database', async () => {
    const pipeline = await pipelineAt(START)
    const feed = new Feed({ db: pipeline.db })
    const { at } = positionOf(await feed.tail())

    expect(await feed.read(CALLER, `1-999999999-0-${at}`)).toMatchObject({ entries: [], isExpired: true })
    expect(await feed.read(CALLER, `18446744073709551615-1-0-${at}`)).toMatchObject({ entries: [], isExpired: true })
  })

  test('but not when nothing was forgotten behind it, however much upkeep forgets', async () => {
    const pipeline = await pipelineAt(START)
    const { db, workerDb } = pipeline
    const feed = new Feed({ db })
    const tail = await feed.tail()
    const { id } = await pipeline.create()
    for (let at = 0; at < 2; at += 1) await pipeline.create()
    const { cursor } = await follow(feed, tail, { count: 3 })
    const clock = new ManualClock(Date.now() + 3 * HOUR)
    expect(await new Upkeep({ db: workerDb, clock, events: new Events() }).runOnce()).toMatchObject({ forgotten: 3 })
    await using writer = await Writer.connect(pipeline, id, 'edited')
    await writer.begin()
    await writer.note()
    await writer.rollback()
    const later = await pipeline.create()

    const { entries } = await follow(feed, cursor, { count: 1 })

    expect(entries).toMatchObject([{ change: 'created', scheduleId: later.id }])
  })
})

test.each([0, 501, 1.5, Number.NaN, '5'])('a limit of %s is refused', async (limit) => {
  const pipeline = await pipelineAt(START)
  const feed = new Feed({ db: pipeline.db })

  await expect(feed.read(CALLER, await feed.tail(), { limit: limit as number })).rejects.toMatchObject({
    code: 'invalid_input',
    problems: [{ path: 'limit' }],
  })
})

test.each(['', 'x', "' or true --", '\0', '1-2-3'])('a cursor that is none is refused: %j', async (cursor) => {
  const pipeline = await pipelineAt(START)
  const feed = new Feed({ db: pipeline.db })

  await expect(feed.read(CALLER, cursor)).rejects.toMatchObject({
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
  const place = { tenantId: 'acme', projectId: 'project-7' }
  const after = { xactId: '2000', id: '8000', ordinal: 7, at: 0 }

  // Behind the wall, as the API reads it: what the wall asks must not keep an index from being used.
  const plans = await transactWithin(db, systemClock, place, async (tx) => {
    queries.length = 0
    await listFeedItems(tx, { ...place, after, horizon: '5001', limit: 100 })
    const [query] = queries
    if (query === undefined) throw new Error('nothing was asked of the feed')
    return plansOf(tx, query)
  })

  expect(plans).toHaveLength(2)
  for (const plan of plans) {
    const nodes = nodesOf(plan)
    const entries = nodes.filter((node) => node['Index Name'] === 'feed_entries_project_idx')
    expect(entries).toHaveLength(1)
    expect(entries[0]?.['Index Cond']).toMatch(/tenant_id = .*project_id = .*ROW\(.*xact_id, .*id\) >= .*xact_id < /)
    // Neither the feed nor the ledger is read from end to end.
    expect(nodes.filter((node) => node['Node Type'] === 'Seq Scan')).toEqual([])
  }
})
