import { randomUUID } from 'node:crypto'
import { setImmediate } from 'node:timers/promises'

import { describe, expect, onTestFinished, test } from 'vitest'

import { Grants } from '../../src/access/grants.ts'
import type { AuditorOptions } from '../../src/audit/auditor.ts'
import type { Db, Tx } from '../../src/db/database.ts'
import { createDb } from '../../src/db/database.ts'
import { listPartitions } from '../../src/db/months.ts'
import { createPool } from '../../src/db/pool.ts'
import { transact } from '../../src/db/transact.ts'
import { Events } from '../../src/kernel/events.ts'
import { deleteChangesOf, deleteRunChanges } from '../../src/maintenance/store/upkeep.ts'
import { Upkeep, type UpkeepCounts, type UpkeepOptions } from '../../src/maintenance/upkeep.ts'
import { whenBlocked, whileHeld } from '../blocked-statement.ts'
import { createDatabase, type TestDatabase } from '../database.ts'
import { ManualClock } from '../manual-clock.ts'
import { ownLease } from '../own-lease.ts'
import { CALLER, DAY, Pipeline } from '../pipeline.ts'
import { countRowsReadIn } from '../rows-read.ts'
import { FAIL, SUCCEEDED } from '../scripted-target.ts'
import { sql } from '../sql.ts'
import { TestAuditor } from '../test-auditor.ts'

interface Setup extends AsyncDisposable {
  readonly db: Db
  /** Has the permissions of the role carillon_worker only. */
  readonly workerDb: Db
  readonly clock: ManualClock
  readonly events: Events
  readonly database: TestDatabase
}

/** A database whose ledger has no month. */
async function setup(now: string): Promise<Setup> {
  const database = await createDatabase()
  const db = createDb(database.pool)
  const workerDb = createDb(createPool({ connectionString: database.url, role: 'carillon_worker' }))
  for (const { name } of await listPartitions(db)) await sql`drop table ${sql.id('carillon', name)}`.execute(db)
  return {
    db,
    workerDb,
    database,
    clock: new ManualClock(now),
    events: new Events(),
    async [Symbol.asyncDispose]() {
      await workerDb.close()
      await database[Symbol.asyncDispose]()
    },
  }
}

type World = Pick<Setup, 'workerDb' | 'clock' | 'events'>

function upkeepOf({ workerDb: db, clock, events }: World, options: UpkeepOptions = {}): Upkeep {
  return new Upkeep({ db, clock, events, lease: ownLease() }, options)
}

/** Runs a complete round of upkeep, in as many slices as it takes, whenever the last round was. */
async function runRound(world: World & Pick<Setup, 'db'>, options: UpkeepOptions = {}): Promise<UpkeepCounts> {
  const { db, clock } = world
  await sql`delete from carillon.service_turns where name = 'upkeep'`.execute(db)
  const upkeep = upkeepOf(world, options)
  const total = { created: 0, dropped: 0, purged: 0, deletedEntries: 0 }
  for (;;) {
    const counts = await upkeep.runOnce()
    for (const name of Object.keys(total) as (keyof UpkeepCounts)[]) total[name] += counts?.[name] ?? 0
    if ((await stepOf(world)) === null) return total
    clock.advance(100)
  }
}

/** The step at which the current round continues; null between rounds. */
async function stepOf({ db }: Pick<Setup, 'db'>): Promise<string | null> {
  const { rows } = await sql<{ step: string | null }>`
    select cursor ->> 'step' as step from carillon.service_turns where name = 'upkeep'`.execute(db)
  return rows[0]?.step ?? null
}

function auditorOf({ workerDb: db, clock, events }: World, options: AuditorOptions = {}): TestAuditor {
  return new TestAuditor({ db, clock, events }, options)
}

async function monthsOf(db: Db): Promise<string[]> {
  return (await listPartitions(db))
    .filter(({ table }) => table === 'runs')
    .map(({ name }) => name.slice('runs_'.length))
}

/** Inserts a deleted schedule with two revisions, each with an own grant. */
async function insertDeleted(db: Db, deletedAt: string): Promise<string> {
  const id = randomUUID()
  const grantIds = [randomUUID(), randomUUID()]
  await sql`
    insert into carillon.execution_grants (
      id, tenant_id, project_id, subject, scopes, created_by_subject, created_at, revoked_by_subject, revoked_at, schedule_id
    )
    select grant_id, 'acme', 'web', 'ada', '{http:dispatch:example.com}', 'ada', '2026-01-01', 'ada', ${deletedAt}, ${id}
    from unnest(${grantIds}::uuid[]) as grant_id`.execute(db)
  await sql`
    insert into carillon.schedules (
      id, tenant_id, project_id, owner_subject, target_kind, state, revision, grant_id, auto_pause_threshold,
      created_by_subject, created_at, deleted_at
    )
    values (
      ${id}, 'acme', 'web', 'ada', 'http', 'deleted', 2, ${grantIds[1]}, 10, 'ada', '2026-01-01', ${deletedAt}
    )`.execute(db)
  await sql`
    insert into carillon.schedule_revisions (
      schedule_id, revision, tenant_id, project_id, name, cadence_kind, cadence_once, target_kind, target, policy,
      grant_id, required_scope, changed_by_subject, changed_at
    )
    select ${id}, revision, 'acme', 'web', 'Digest', 'once', '{}', 'http', '{}', '{}', grant_id,
      'http:dispatch:example.com', 'ada', '2026-01-01'
    from unnest(${grantIds}::uuid[]) with ordinality as revised(grant_id, revision)`.execute(db)
  await sql`
    insert into carillon.schedule_changes (
      schedule_id, tenant_id, project_id, change, revision, actor_subject, changed_at
    )
    values (${id}, 'acme', 'web', 'created', 1, 'ada', '2026-01-01'), (${id}, 'acme', 'web', 'deleted', 2, 'ada', ${deletedAt})`.execute(
    db,
  )
  return id
}

test('upkeep creates the current month and the next two, and one more when a month begins', async () => {
  await using world = await setup('2026-11-30T23:59:59.999Z')
  const upkeep = () => runRound(world)

  expect(await upkeep()).toEqual({ created: 9, dropped: 0, purged: 0, deletedEntries: 0 })
  expect(await monthsOf(world.db)).toEqual(['2026_11', '2026_12', '2027_01'])
  expect(await upkeep()).toEqual({ created: 0, dropped: 0, purged: 0, deletedEntries: 0 })

  world.clock.advance(1)
  expect(await upkeep()).toEqual({ created: 3, dropped: 0, purged: 0, deletedEntries: 0 })
  expect(await monthsOf(world.db)).toEqual(['2026_11', '2026_12', '2027_01', '2027_02'])
  expect(await upkeep()).toEqual({ created: 0, dropped: 0, purged: 0, deletedEntries: 0 })
})

test('a month is dropped when its last day is 90 days ago, and not a millisecond sooner', async () => {
  await using world = await setup('2026-11-15T00:00:00Z')
  const upkeep = () => runRound(world)
  await upkeep()
  world.clock.advance(Date.parse('2027-03-01T00:00:00Z') - Date.parse('2026-11-15T00:00:00Z') - 1)

  expect((await upkeep()).dropped).toBe(0)
  world.clock.advance(1)
  expect((await upkeep()).dropped).toBe(3)

  expect(await monthsOf(world.db)).toEqual(['2026_12', '2027_01', '2027_02', '2027_03', '2027_04', '2027_05'])
  expect(await upkeep()).toEqual({ created: 0, dropped: 0, purged: 0, deletedEntries: 0 })
})

test('the retention and the number of months ahead can be configured', async () => {
  await using world = await setup('2026-11-15T00:00:00Z')

  await runRound(world, { monthsAhead: 0 })
  expect(await monthsOf(world.db)).toEqual(['2026_11'])
  world.clock.advance(31 * DAY)
  await runRound(world, { monthsAhead: 1, retentionMs: 15 * DAY })

  expect(await monthsOf(world.db)).toEqual(['2026_12', '2027_01'])
})

test('after an outage of 100 days every slot within the retention gets its line (I6)', async () => {
  await using pipeline = await Pipeline.at('2026-02-10T00:00:00Z')
  const { db, clock } = pipeline
  const worker = pipeline.worker()
  const schedule = await pipeline.create({ cadence: { kind: 'cron', expression: '0 9 * * *', timezone: 'UTC' } })
  for (const { name } of await listPartitions(db)) await sql`drop table ${sql.id('carillon', name)}`.execute(db)
  const upkeep = () => runRound(pipeline)
  await upkeep()
  await sql`drop table carillon.runs_2026_03, carillon.attempts_2026_03, carillon.transcripts_2026_03`.execute(db)
  clock.advance(100 * DAY + 10 * 3_600_000)

  await upkeep()
  // From the month of 19 February, which is 90 days ago, to two months ahead.
  expect(await monthsOf(db)).toEqual(['2026_02', '2026_03', '2026_04', '2026_05', '2026_06', '2026_07'])
  expect(await upkeep()).toEqual({ created: 0, dropped: 0, purged: 0, deletedEntries: 0 })
  await worker.runDue()

  const lines = await pipeline.ledger(schedule)
  expect(lines).toHaveLength(90)
  expect(lines[0]).toMatchObject({
    scheduledFor: Date.parse('2026-02-21T09:00:00Z'),
    state: 'skipped',
    reason: 'missed',
  })
  expect(await auditorOf(pipeline, { windowMs: 90 * DAY }).audit()).toMatchObject({ slots: 90, repaired: 0 })
})

test('a deleted schedule is removed with its history and own grants when the last month that may hold its lines is dropped', async () => {
  await using world = await setup('2026-11-15T00:00:00Z')
  const { db, clock } = world
  const upkeep = () => runRound(world)
  await upkeep()
  const old = await insertDeleted(db, '2026-11-30T23:00:00Z')
  const young = await insertDeleted(db, '2026-12-01T00:00:00Z')
  clock.advance(Date.parse('2027-03-01T00:00:00Z') - Date.parse('2026-11-15T00:00:00Z') - 1)

  expect((await upkeep()).purged).toBe(0)
  clock.advance(1)
  expect(await upkeep()).toMatchObject({ dropped: 3, purged: 1 })

  for (const [table, column] of [
    ['schedules', 'id'],
    ['schedule_revisions', 'schedule_id'],
    ['schedule_changes', 'schedule_id'],
    ['execution_grants', 'schedule_id'],
  ]) {
    const { rows } = await sql<{ id: string }>`
      select distinct ${sql.id(String(column))} as id from ${sql.id('carillon', String(table))}`.execute(db)
    expect(rows, table).toEqual([{ id: young }])
  }
  expect(old).not.toBe(young)
})

test('all old deleted schedules are removed, even if they do not fit one statement, and no other schedule', async () => {
  await using pipeline = await Pipeline.at('2026-11-15T00:00:00Z')
  const { db, scheduler } = pipeline
  const active = await pipeline.create()
  const paused = await pipeline.create()
  await scheduler.pause(CALLER, paused.id, { reason: 'a holiday' })
  await insertDeleted(db, '2026-01-01T00:00:00Z')
  // These schedules act by a given grant, which is no schedule's own.
  const { id: grantId } = await new Grants({ db, clock: pipeline.clock }).create(CALLER, {
    scopes: ['http:dispatch:*'],
  })
  await sql`
    insert into carillon.schedules (
      id, tenant_id, project_id, owner_subject, target_kind, state, revision, grant_id, auto_pause_threshold,
      created_by_subject, created_at, deleted_at
    )
    select gen_random_uuid(), 'acme', 'web', 'ada', 'http', 'deleted', 1, ${grantId}, 10, 'ada', '2026-01-01', '2026-01-02'
    from generate_series(1, 1000)`.execute(db)

  expect((await runRound(pipeline)).purged).toBe(1001)

  const { rows } = await sql<{ id: string }>`select id from carillon.schedules order by id`.execute(db)
  expect(rows.map(({ id }) => id)).toEqual([active.id, paused.id].toSorted())
  const grants = await sql<{ id: string }>`select id from carillon.execution_grants order by id`.execute(db)
  expect(grants.rows.map(({ id }) => id)).toEqual([active.grantId, paused.grantId, grantId].toSorted())
})

/** Adds lines to the history of a schedule, without entries of the event log. `scheduledFor` is the slot of the run that a line names. */
async function insertLinesOf(
  db: Db,
  p: { scheduleId: string; change: string; scheduledFor?: string; count?: number },
): Promise<void> {
  await sql`
    insert into carillon.schedule_changes (
      schedule_id, tenant_id, project_id, change, revision, scheduled_for, actor_subject, changed_at
    )
    select ${p.scheduleId}, 'acme', 'web', ${p.change}::carillon.schedule_change, 2, ${p.scheduledFor ?? null}, 'ada', '2026-01-02'
    from generate_series(1, ${p.count ?? 1}::integer)`.execute(db)
  await sql`delete from carillon.feed_entries`.execute(db)
}

test('lines of requested and cancelled runs are deleted when the month of the run is dropped; other lines of a history stay', async () => {
  await using world = await setup('2026-11-15T00:00:00Z')
  const { db, clock } = world
  const upkeep = () => runRound(world)
  await upkeep()
  const scheduleId = await insertDeleted(db, '2027-02-01T00:00:00Z')
  const [old, young] = ['2026-11-30T23:59:59.999Z', '2026-12-01T00:00:00Z']
  await insertLinesOf(db, { scheduleId, change: 'edited' })
  for (const scheduledFor of [old, young]) {
    await insertLinesOf(db, { scheduleId, change: 'run_requested', scheduledFor })
    await insertLinesOf(db, { scheduleId, change: 'run_cancelled', scheduledFor })
  }
  const lines = async (): Promise<unknown> => {
    const { rows } = await sql<{ line: string }>`
      select change || coalesce(to_char(scheduled_for at time zone 'UTC', ' YYYY-MM-DD'), '') as line
      from carillon.schedule_changes order by id`.execute(db)
    return rows.map(({ line }) => line)
  }
  const kept = ['created', 'deleted', 'edited']
  const ofYoung = ['run_requested 2026-12-01', 'run_cancelled 2026-12-01']
  clock.advance(Date.parse('2027-03-01T00:00:00Z') - Date.parse('2026-11-15T00:00:00Z') - 1)

  expect((await upkeep()).deletedEntries).toBe(0)
  expect(await lines()).toEqual([...kept, 'run_requested 2026-11-30', 'run_cancelled 2026-11-30', ...ofYoung])
  clock.advance(1)
  expect(await upkeep()).toMatchObject({ dropped: 3, deletedEntries: 2 })

  expect(await lines()).toEqual([...kept, ...ofYoung])
})

test('a slice deletes a bounded number of lines of runs, and the next slice continues, also on another worker', async () => {
  await using world = await setup('2027-06-15T12:00:00Z')
  const { db, clock } = world
  const scheduleId = await insertDeleted(db, '2027-06-01T00:00:00Z')
  await insertLinesOf(db, { scheduleId, change: 'run_requested', scheduledFor: '2027-01-01T00:00:00Z', count: 10_100 })

  expect(await upkeepOf(world).runOnce()).toMatchObject({ deletedEntries: 10_000 })
  expect(await stepOf(world)).toBe('run_changes')
  // The worker dies.
  clock.advance(11_000)
  expect(await upkeepOf(world).runOnce()).toMatchObject({ deletedEntries: 100 })

  expect(await stepOf(world)).toBeNull()
})

/** Counts the lines of histories that a transaction of a worker reads, whose statements are planned once. */
async function countLinesRead({ database, clock }: Setup, work: (tx: Tx) => Promise<unknown>): Promise<number> {
  const role = 'carillon_worker'
  const db = createDb(createPool({ connectionString: database.url, role, isPrepared: true, maxConnections: 1 }))
  onTestFinished(() => db.close())
  return transact(db, clock, (tx) => countRowsReadIn(tx, 'schedule_changes', () => work(tx)))
}

test('deleting lines of runs reads no other lines', async () => {
  await using world = await setup('2027-06-15T12:00:00Z')
  const { db } = world
  const scheduleId = await insertDeleted(db, '2027-06-01T00:00:00Z')
  await insertLinesOf(db, { scheduleId, change: 'edited', count: 20_000 })
  for (const [scheduledFor, count] of [
    ['2027-05-01T00:00:00Z', 20_000],
    ['2027-01-01T00:00:00Z', 100],
  ] as const) {
    await insertLinesOf(db, { scheduleId, change: 'run_requested', scheduledFor, count })
  }
  await sql`analyze carillon.schedule_changes`.execute(db)

  const read = await countLinesRead(world, async (tx) => {
    expect(await deleteRunChanges(tx, { before: new Date('2027-02-01'), limit: 10_000 })).toBe(100)
  })

  // Each line is found by one index and deleted by another. Postgres may read one more to see where the old ones end.
  expect(read).toBeLessThanOrEqual(2 * 100 + 1)
})

test('a deleted schedule with a long history is removed in portions, the earliest lines first, and its row last', async () => {
  await using world = await setup('2027-06-15T12:00:00Z')
  const { db, clock } = world
  const scheduleId = await insertDeleted(db, '2026-12-01T00:00:00Z')
  await insertLinesOf(db, { scheduleId, change: 'edited', count: 25_000 })
  await sql`
    insert into carillon.slot_backlogs (schedule_id, revision, until, tenant_id, project_id, next_slot_at, reason, made_at)
    values (${scheduleId}, 1, '2026-01-02', 'acme', 'web', '2026-01-01', 'missed', '2026-01-02')`.execute(db)
  const last = await sql<{ id: string }>`select max(id) as id from carillon.schedule_changes`.execute(db)
  const state = async (): Promise<unknown> => {
    const { rows } = await sql`
      select (select count(*)::int from carillon.schedule_changes) as changes,
        (select max(id) from carillon.schedule_changes) as last,
        (select count(*)::int from carillon.schedule_revisions) as revisions,
        (select count(*)::int from carillon.slot_backlogs) as backlogs,
        (select count(*)::int from carillon.execution_grants) as grants,
        (select count(*)::int from carillon.schedules) as schedules`.execute(db)
    return rows[0]
  }
  const untouched = { last: last.rows[0]?.id, revisions: 2, backlogs: 1, grants: 2, schedules: 1 }
  const upkeep = upkeepOf(world)

  expect(await upkeep.runOnce()).toMatchObject({ purged: 0 })
  expect(await state()).toEqual({ changes: 15_002, ...untouched })
  clock.advance(10_000)
  expect(await upkeep.runOnce()).toMatchObject({ purged: 0 })
  expect(await state()).toEqual({ changes: 5002, ...untouched })
  clock.advance(10_000)
  expect(await upkeep.runOnce()).toMatchObject({ purged: 1 })
  expect(await state()).toEqual({ changes: 0, last: null, revisions: 0, backlogs: 0, grants: 0, schedules: 0 })
})

test('removing deleted schedules reads no history of other schedules', async () => {
  await using world = await setup('2027-06-15T12:00:00Z')
  const { db } = world
  const expired = await insertDeleted(db, '2026-12-01T00:00:00Z')
  const scheduleId = await insertDeleted(db, '2027-06-01T00:00:00Z')
  await insertLinesOf(db, { scheduleId, change: 'edited', count: 20_000 })
  await sql`analyze carillon.schedule_changes`.execute(db)

  const read = await countLinesRead(world, async (tx) => {
    expect(await deleteChangesOf(tx, { scheduleIds: [expired], limit: 10_000 })).toBe(2)
  })

  // Two lines, found by one index and deleted by another.
  expect(read).toBeLessThanOrEqual(2 * 2)
})

test('audits that are older than the retention are deleted, and younger ones are not', async () => {
  await using world = await setup('2026-08-01T00:00:00Z')
  const auditor = auditorOf(world)
  const upkeep = () => runRound(world)
  await upkeep()
  await auditor.audit()
  world.clock.advance(DAY)
  await auditor.audit()
  world.clock.advance(89 * DAY + 1)

  expect((await upkeep()).purged).toBe(1)

  const { rows } = await sql<{ completed_at: Date }>`select completed_at from carillon.audits`.execute(world.db)
  expect(rows).toEqual([{ completed_at: new Date('2026-08-02T00:00:00Z') }])
})

/** Inserts entries of the event log with these instants, in this order. */
async function noteEntries(db: Db, instants: readonly string[]): Promise<void> {
  for (const instant of instants) {
    await sql`
      insert into carillon.feed_entries (tenant_id, project_id, kind, schedule_ids, changes, noted_at)
      values ('acme', 'web', 'schedule', array[gen_random_uuid()], '{edited}', ${instant})`.execute(db)
  }
}

/** Resolves once no open transaction of the server is older than an entry, including those of other tests. */
async function whenReadable(db: Db): Promise<void> {
  for (;;) {
    const { rows } = await sql`
      select from carillon.feed_entries where xact_id >= pg_snapshot_xmin(pg_current_snapshot())`.execute(db)
    if (rows.length === 0) return
  }
}

async function forgottenIdOf(db: Db): Promise<number> {
  const { rows } = await sql<{ id: string }>`select forgotten_id as id from carillon.feed_floor`.execute(db)
  return Number(rows[0]?.id)
}

async function entriesOf(db: Db): Promise<string[]> {
  const { rows } = await sql<{ noted_at: Date }>`select noted_at from carillon.feed_entries order by id`.execute(db)
  return rows.map(({ noted_at }) => noted_at.toISOString())
}

test('entries of the event log are deleted after two hours, and not a millisecond sooner', async () => {
  await using world = await setup('2026-11-15T12:00:00Z')
  const { db, clock } = world
  const instants = ['2026-11-15T09:00:00.000Z', '2026-11-15T10:00:00.000Z', '2026-11-15T11:00:00.000Z']
  await noteEntries(db, instants)
  await whenReadable(db)
  const upkeep = () => runRound(world)

  expect(await upkeep()).toMatchObject({ deletedEntries: 1 })
  expect(await entriesOf(db)).toEqual(instants.slice(1))
  clock.advance(1)
  expect(await upkeep()).toMatchObject({ deletedEntries: 1 })
  expect(await entriesOf(db)).toEqual(instants.slice(2))
})

test('the newest entry of the event log is deleted too, and its id is kept so that a reader knows whether it missed entries', async () => {
  await using world = await setup('2026-11-15T12:00:00Z')
  const { db } = world
  expect(await forgottenIdOf(db)).toBe(0)
  await noteEntries(db, ['2026-11-14T09:00:00.000Z', '2026-11-14T10:00:00.000Z'])
  await whenReadable(db)

  expect(await runRound(world)).toMatchObject({ deletedEntries: 2 })
  expect(await entriesOf(db)).toEqual([])
  expect(await forgottenIdOf(db)).toBe(2)
  expect(await runRound(world)).toMatchObject({ deletedEntries: 0 })
  expect(await forgottenIdOf(db)).toBe(2)
})

// The entry that is deleted last has the smaller id.
test('the highest deleted id of the event log never decreases', async () => {
  await using world = await setup('2026-11-15T12:00:00Z')
  const { db, clock } = world
  await noteEntries(db, ['2026-11-15T11:00:00.000Z', '2026-11-15T09:00:00.000Z'])
  await whenReadable(db)

  expect(await runRound(world)).toMatchObject({ deletedEntries: 1 })
  expect(await forgottenIdOf(db)).toBe(2)
  clock.advance(DAY)
  expect(await runRound(world)).toMatchObject({ deletedEntries: 1 })
  expect(await forgottenIdOf(db)).toBe(2)
})

test('entries that no reader can see yet because of an older open transaction are not deleted', async () => {
  await using world = await setup('2026-11-15T12:00:00Z')
  const { db } = world

  await whileHeld(world, 'select pg_current_xact_id()', async () => {
    await noteEntries(db, ['2026-11-15T09:00:00.000Z', '2026-11-15T11:00:00.000Z'])
    expect(await runRound(world)).toMatchObject({ deletedEntries: 0 })
  })
  await whenReadable(db)

  expect(await runRound(world)).toMatchObject({ deletedEntries: 1 })
})

test('idempotent answers are deleted after a day, even if they do not fit one statement', async () => {
  await using world = await setup('2026-11-15T12:00:00Z')
  const { db } = world
  const answer = async (key: string, at: string, count: number): Promise<unknown> =>
    sql`
      insert into carillon.idempotent_answers (tenant_id, project_id, subject, key, request_hash, schedule_id, answer, answered_at)
      select 'acme', 'web', 'user:alice', ${key} || n, sha256('x'), gen_random_uuid(), '{}', ${at}
      from generate_series(1, ${count}::int) as n`.execute(db)
  await answer('old', '2026-11-14T11:59:59.999Z', 10_001)
  await answer('young', '2026-11-14T12:00:01Z', 1)

  expect(await runRound(world)).toMatchObject({ deletedEntries: 10_001 })

  const { rows } = await sql`select key from carillon.idempotent_answers`.execute(db)
  expect(rows).toEqual([{ key: 'young1' }])
})

test('a month that cannot be dropped because of a reader is a failure, retried a minute later; every other step is done', async () => {
  await using world = await setup('2026-08-01T00:00:00Z')
  const { db, clock } = world
  await runRound(world)
  clock.advance(150 * DAY)
  await noteEntries(db, ['2026-11-15T09:00:00.000Z'])
  await whenReadable(db)
  const upkeep = upkeepOf(world)
  await sql`delete from carillon.service_turns`.execute(db)
  const reader = await world.database.pool.connect()
  await reader.query('begin')
  await reader.query('select count(*) from carillon.runs_2026_08')

  await expect(upkeep.runOnce()).rejects.toMatchObject({ code: '55P03' })
  expect(await monthsOf(db)).toEqual(['2026_08', '2026_09', '2026_10', '2026_12', '2027_01', '2027_02'])
  expect(await entriesOf(db)).toEqual([])
  await reader.query('rollback')
  reader.release()

  clock.advance(60_000 - 1)
  expect(await upkeep.runOnce()).toBeUndefined()
  clock.advance(1)
  expect(await upkeep.runOnce()).toMatchObject({ created: 0, dropped: 3 })
  // The next round is an hour later.
  clock.advance(3_600_000 - 1)
  expect(await upkeep.runOnce()).toBeUndefined()
  clock.advance(1)
  expect(await upkeep.runOnce()).toBeDefined()
})

test('a slice removes a bounded number of rows, and the next slice continues, also on another worker', async () => {
  await using world = await setup('2026-11-15T12:00:00Z')
  const { db, clock } = world
  await sql`
    insert into carillon.feed_entries (tenant_id, project_id, kind, schedule_ids, changes, noted_at)
    select 'acme', 'web', 'schedule', array[gen_random_uuid()], '{edited}', '2026-11-15T09:00:00Z'
    from generate_series(1, 25000)`.execute(db)
  await whenReadable(db)
  const [one, other] = [upkeepOf(world), upkeepOf(world)]

  expect(await one.runOnce()).toEqual({ created: 9, dropped: 0, purged: 0, deletedEntries: 10_000 })
  expect(await stepOf(world)).toBe('event_log')
  expect(await one.runOnce()).toBeUndefined()
  clock.advance(100)
  expect(await one.runOnce()).toEqual({ created: 0, dropped: 0, purged: 0, deletedEntries: 10_000 })
  // The worker dies.
  clock.advance(11_000)
  expect(await other.runOnce()).toEqual({ created: 0, dropped: 0, purged: 0, deletedEntries: 5000 })

  expect(await stepOf(world)).toBeNull()
  expect(await entriesOf(db)).toEqual([])
})

/** Makes every delete from a table fail, as a damaged index would. */
async function refuseDeletes({ db }: Pick<Setup, 'db'>, table: string): Promise<void> {
  const name = sql.id('carillon', `refuse_${table}`)
  await sql`
    create function ${name}() returns trigger language plpgsql as $$
    begin raise exception ${sql.lit(`${table} is damaged`)}; end $$`.execute(db)
  await sql`
    create trigger refuse before delete on ${sql.id('carillon', table)} for each statement
    execute function ${name}()`.execute(db)
}

test('every slice creates months, even while the round is at a later step that fails', async () => {
  await using world = await setup('2026-11-15T12:00:00Z')
  const { db, clock } = world
  const upkeep = upkeepOf(world)
  await upkeep.runOnce()
  await sql`update carillon.service_turns set cursor = '{"step": "event_log", "isPostponed": false}'`.execute(db)
  await refuseDeletes(world, 'feed_entries')
  clock.advance(31 * DAY)

  await expect(upkeep.runOnce()).rejects.toThrow('feed_entries is damaged')

  expect(await monthsOf(db)).toEqual(['2026_11', '2026_12', '2027_01', '2027_02'])
})

test('a failing step does not keep the others from being done; each error is reported, and a new round begins a minute later', async () => {
  await using world = await setup('2026-11-15T12:00:00Z')
  const { db, clock } = world
  const upkeep = upkeepOf(world)
  const deleted = await insertDeleted(db, '2026-11-15T12:00:00Z')
  await refuseDeletes(world, 'feed_entries')
  await refuseDeletes(world, 'idempotent_answers')
  clock.advance(200 * DAY)

  await expect(upkeep.runOnce()).rejects.toThrow('feed_entries is damaged; idempotent_answers is damaged')

  const { rows } = await sql`select from carillon.schedules where id = ${deleted}`.execute(db)
  expect(rows).toEqual([])
  expect(await stepOf(world)).toBeNull()
  clock.advance(59_999)
  expect(await upkeep.runOnce()).toBeUndefined()
  clock.advance(1)
  await expect(upkeep.runOnce()).rejects.toThrow('is damaged')
})

test('upkeep counts as failing until its next round, and tries again after a second if it cannot claim its turn', async () => {
  await using world = await setup('2026-11-15T12:00:00Z')
  const { db, clock, events, database } = world
  const upkeep = upkeepOf(world)
  /** Resolves once upkeep sleeps, after a failure or after its work. */
  const whenAsleep = async (): Promise<void> => {
    while (clock.waiting === 0) await setImmediate()
  }
  await refuseDeletes(world, 'feed_entries')
  const errors: string[] = []
  events.on('service.failed', ({ error }) => errors.push((error as Error).message))

  await database.pool.query('revoke select, update on carillon.service_turns from carillon_worker')
  upkeep.start()
  await whenAsleep()
  await database.pool.query('grant select, update on carillon.service_turns to carillon_worker')
  clock.advance(1000)
  await whenAsleep()
  expect(errors).toEqual(['permission denied for table service_turns', 'feed_entries is damaged'])
  clock.advance(59_999)
  await whenAsleep()
  expect(upkeep.failure).toMatchObject({ failures: 2, forMs: 60_999 })
  await sql`drop function carillon.refuse_feed_entries cascade`.execute(db)
  clock.advance(1)
  await whenAsleep()

  expect(upkeep.failure).toBeUndefined()
  await upkeep.stop()
})

test('ensureMonths creates the months that a worker needs, and removes nothing', async () => {
  await using world = await setup('2026-11-15T12:00:00Z')
  const { db } = world
  await noteEntries(db, ['2026-11-15T09:00:00.000Z'])
  await whenReadable(db)

  await upkeepOf(world).ensureMonths()

  expect(await monthsOf(db)).toEqual(['2026_11', '2026_12', '2027_01'])
  expect(await entriesOf(db)).toHaveLength(1)
  const { rows } = await sql`select from carillon.service_turns`.execute(db)
  expect(rows).toEqual([])
})

describe('I1: a month with an open run', () => {
  const HELD = {
    cadence: { kind: 'once', at: '2026-01-15T00:00:00Z' },
    policy: { retry: { maxAttempts: 100, baseSeconds: 86_400, capSeconds: 86_400 } },
  }

  test('is kept as long as the run waits, and is dropped once the run has ended', async () => {
    await using pipeline = await Pipeline.at('2026-01-14T00:00:00Z')
    const { db, clock, target } = pipeline
    const worker = pipeline.worker()
    const schedule = await pipeline.create(HELD)
    target.script = () => FAIL
    clock.advance(DAY)
    await worker.runDue()
    expect(await pipeline.lines(schedule)).toEqual(['00:00 retrying'])
    clock.advance(150 * DAY)

    await runRound(pipeline)
    expect((await monthsOf(db))[0]).toBe('2026_01')
    target.script = () => SUCCEEDED
    await worker.runDue()
    expect(await pipeline.lines(schedule)).toEqual(['00:00 succeeded'])
    await runRound(pipeline)

    expect((await monthsOf(db))[0]).toBe('2026_03')
  })

  test('is kept if a late begin has inserted the run and not committed yet: upkeep waits for the commit', async () => {
    await using pipeline = await Pipeline.at('2026-01-14T00:00:00Z')
    const { db, clock, database } = pipeline
    const { id } = await pipeline.create(HELD)
    clock.advance(151 * DAY)
    const late = await database.pool.connect()
    await late.query('begin')
    await late.query(INSERT_LATE, [id])

    // Before the commit upkeep would find no open run. The lock makes it look after the commit.
    const kept = runRound(pipeline)
    await whenBlocked(pipeline)
    await late.query('commit')
    late.release()

    expect((await kept).dropped).toBeGreaterThan(0)
    expect((await monthsOf(db))[0]).toBe('2026_01')
    expect(await pipeline.lines({ id })).toEqual(['00:00 pending'])
  })

  test('is given up after a second of waiting for that commit, and tried again a minute later', async () => {
    await using pipeline = await Pipeline.at('2026-01-14T00:00:00Z')
    const { db, clock, database } = pipeline
    const { id } = await pipeline.create(HELD)
    clock.advance(151 * DAY)
    await sql`delete from carillon.service_turns`.execute(db)
    const upkeep = upkeepOf(pipeline)
    const late = await database.pool.connect()
    await late.query('begin')
    await late.query(INSERT_LATE, [id])

    await expect(upkeep.runOnce()).rejects.toMatchObject({ code: '55P03' })
    // A statement that waited behind upkeep continues.
    expect(await pipeline.lines({ id })).toEqual([])
    await late.query('commit')
    late.release()
    clock.advance(60_000)
    await upkeep.runOnce()

    expect(await monthsOf(db)).toEqual([
      '2026_01',
      '2026_03',
      '2026_04',
      '2026_05',
      '2026_06',
      '2026_07',
      '2026_08',
      '2026_09',
      '2026_10',
      '2026_11',
      '2026_12',
      '2027_01',
    ])
    expect(await pipeline.lines({ id })).toEqual(['00:00 pending'])
  })
})

/** Inserts an open run, as a begin that is 150 days late would. */
const INSERT_LATE = `
  insert into carillon.runs (
    schedule_id, scheduled_for, id, tenant_id, project_id, revision, trigger, state, begun_at, waits_for, due_at, lane
  )
  select id, '2026-01-15T00:00Z', gen_random_uuid(), tenant_id, project_id, 1, 'schedule', 'pending', now(), 'worker',
    '2026-06-14T00:00Z', lane
  from carillon.schedules where id = $1`
