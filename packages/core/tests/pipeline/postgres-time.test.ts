import pg from 'pg'
import { afterEach, expect, test, vi } from 'vitest'

import { CadenceCache } from '../../src/cadences/cadence-cache.ts'
import { createDb, type Db } from '../../src/db/database.ts'
import { createPool } from '../../src/db/pool.ts'
import { transact } from '../../src/db/transact.ts'
import { systemClock } from '../../src/kernel/clock.ts'
import { Events } from '../../src/kernel/events.ts'
import { Lease } from '../../src/kernel/lease.ts'
import { beginBatch, type BegunBatch } from '../../src/pipeline/begin.ts'
import { Heartbeat } from '../../src/pipeline/heartbeat.ts'
import { claimDue } from '../../src/pipeline/store/claim.ts'
import { type LaneFrom, lookAhead } from '../../src/pipeline/store/look.ts'
import { lanesOf } from '../../src/policy/lane-names.ts'
import type { Target } from '../../src/ports/target.ts'
import { Scheduler } from '../../src/scheduler.ts'
import type { ScheduleInput } from '../../src/schedules/input.ts'
import { whenBlocked } from '../blocked-statement.ts'
import { createDatabase, type TestDatabase } from '../database.ts'
import { emptiedPipelines } from '../emptied-pipeline.ts'
import { pipelineOf } from '../pipeline-parts.ts'
import { CALLER, DAY, EVERY_MINUTE, HOUR, MINUTE, Pipeline } from '../pipeline.ts'
import { nodesOf, plansOf, recordingDb, watchedDb, type PlanNode } from '../query-plan.ts'
import { NO_HOOKS } from '../run-fence.ts'
import { FAIL, FAIL_FOR_GOOD, held, ScriptedTarget, SUCCEEDED } from '../scripted-target.ts'

const pipelineAt = emptiedPipelines()
const START = '2026-03-02T09:00:00Z'

afterEach(() => {
  vi.useRealTimers()
})

/** A worker whose statements use the clock of Postgres, as in production. The test sets the clock of this process. */
function productionWorker({ pool, url }: TestDatabase, connect = createDb) {
  const db = connect(createPool({ connectionString: url, role: 'carillon_worker', isPrepared: true }))
  const target = new ScriptedTarget()
  const targets = new Map<string, Target>([['test', target]])
  const [clock, events, lease] = [systemClock, new Events(), new Lease(systemClock)]
  const deps = { db, clock, events, targets, lease }
  const heartbeat = new Heartbeat(
    { ...deps, failing: () => null, onCancel: () => undefined },
    { name: 'skewed', targetKinds: ['test'], heartbeatMs: HOUR },
  )
  const loop = pipelineOf(deps)
  /** Begins the slots that are due at an instant, which may lie ahead. */
  const begin = async (slotAt: number): Promise<BegunBatch> => {
    const claim = {
      lanes: lanesOf(['test']).map(whole),
      perLane: 10,
      workerId: lease.workerId ?? '',
      slotAt,
      hookedKind: null,
    }
    return beginBatch({ ...deps, hooks: NO_HOOKS, cadences: new CadenceCache(), retentionMs: 90 * DAY }, claim)
  }
  return {
    target,
    heartbeat,
    loop,
    begin,
    scheduler: new Scheduler({ db: createDb(pool), targets, events }),
    [Symbol.asyncDispose]: () => db.close(),
  }
}

/** Shifts the clock of this process by `ms` against that of Postgres. Timers do not change. */
function skewBy(ms: number): void {
  vi.useFakeTimers({ toFake: ['Date'], now: Date.now() + ms })
}

async function databaseNow({ pool }: TestDatabase): Promise<number> {
  const { rows } = await pool.query<{ now: Date }>('select now() as now')
  return rows[0]?.now.getTime() ?? Number.NaN
}

test.each([
  ['a day ahead', DAY],
  ['a minute ahead', MINUTE],
  ['a day behind', -DAY],
])('a process whose own clock is %s runs no slot early and none late (I10)', async (_name, skewMs) => {
  await using database = await createDatabase()
  skewBy(skewMs)
  await using worker = productionWorker(database)
  const { scheduler, loop, heartbeat, target } = worker
  const now = await databaseNow(database)
  const once = (at: number): object => ({ kind: 'once', at: new Date(at).toISOString() })
  const soon = await scheduler.create(CALLER, { ...EVERY_MINUTE, cadence: once(now + 1.5 * HOUR) })
  const due = await scheduler.create(CALLER, { ...EVERY_MINUTE, cadence: once(now + HOUR) })
  await database.pool.query(
    `update carillon.schedules set next_slot_at = date_trunc('milliseconds', now()), due_at = now() where id = $1`,
    [due.id],
  )
  await heartbeat.runOnce()

  await loop.runOnce()
  await loop.whenIdle()

  expect(target.calls.map(({ scheduleId }) => scheduleId)).toEqual([due.id])
  expect(await scheduler.get(CALLER, soon.id)).toMatchObject({
    state: 'active',
    nextSlotAt: Math.floor(now + 1.5 * HOUR),
  })
  const { rows } = await database.pool.query(
    `select begun_at < scheduled_for as is_early,
       begun_at >= $1 and started_at = begun_at and completed_at <= clock_timestamp() as is_now
     from carillon.runs`,
    [new Date(now)],
  )
  expect(rows).toEqual([{ is_early: false, is_now: true }])
})

test('a schedule that a process with a wrong clock creates has the right next slot, and an id with the right time (I10)', async () => {
  await using database = await createDatabase()
  skewBy(DAY)
  await using worker = productionWorker(database)
  const { scheduler } = worker
  const before = await databaseNow(database)

  const schedule = await scheduler.create(CALLER, EVERY_MINUTE)

  const after = await databaseNow(database)
  expect(schedule.nextSlotAt).toBeGreaterThan(before)
  expect(schedule.nextSlotAt).toBeLessThanOrEqual(after + MINUTE)
  const idTime = Number.parseInt(schedule.id.replaceAll('-', '').slice(0, 12), 16)
  expect(idTime).toBeGreaterThanOrEqual(before)
  expect(idTime).toBeLessThanOrEqual(after)
})

test('a lease that a process with a wrong clock takes is as long as any other (I10)', async () => {
  await using database = await createDatabase()
  skewBy(-DAY)
  await using worker = productionWorker(database)
  const before = await databaseNow(database)

  await worker.heartbeat.runOnce()

  const { rows } = await database.pool.query(
    `select lease_expires_at - heartbeat_at = interval '3 hours' and heartbeat_at between $1 and now() as is_right
     from carillon.workers`,
    [new Date(before)],
  )
  expect(rows).toEqual([{ is_right: true }])
})

test('look and claim find due slots among 20,000 schedules by index conditions alone, under either role (I10)', async () => {
  await using database = await createDatabase()
  await insertHerd(database)
  const worker = createPool({ connectionString: database.url, role: 'carillon_worker' })
  const wholeLanes = lanesOf(['test']).map(whole)
  const restOfLanes = wholeLanes.map(({ lane }) => ({
    lane,
    after: { dueAt: Date.now(), scheduleId: UNKNOWN_ID, slot: Infinity },
  }))
  const statements = [
    (db: Db) => lookAhead(db, { slots: wholeLanes, runs: wholeLanes, horizonMs: 1000, now: null }),
    (db: Db) => lookAhead(db, { slots: restOfLanes, runs: restOfLanes, horizonMs: 1000, now: null }),
    (db: Db) =>
      transact(db, systemClock, (tx) =>
        claimDue(tx, { lanes: restOfLanes, perLane: 10, workerId: UNKNOWN_ID, now: null }),
      ),
  ]

  for (const pool of [database.pool, worker]) {
    for (const statement of statements) {
      const { db, queries } = recordingDb(pool)
      await statement(db)
      const [query, ...others] = queries.filter(({ text }) => text.includes('from schedules'))
      if (query === undefined) throw new Error('expected a statement on schedules, got none')
      expect(others).toEqual([])
      for (const plan of await plansOf(db, query)) expectAgendaScan(nodesOf(plan))
    }
  }
  await worker.end()
})

function expectAgendaScan(nodes: readonly PlanNode[]): void {
  const scans = nodes.filter((node) => node['Relation Name'] === 'schedules')
  expect(scans).toHaveLength(1)
  expect(scans[0]).toMatchObject({ 'Index Name': 'schedules_agenda_idx' })
  expect(scans[0]?.['Node Type']).toMatch(/^Index (Only )?Scan$/)
  expect(scans[0]?.['Index Cond']).toMatch(
    /lane = .*ROW\(due_at, id\) > .*due_at <= |lane = .*due_at <= .*ROW\(due_at, id\) > /,
  )
  // The only filter repeats the condition of the partial index, for rows that were locked meanwhile.
  expect([undefined, `(state = 'active'::schedule_state)`]).toContain(scans[0]?.Filter)
  // open-run-plans.test.ts checks the plans of the ledger, which is empty here.
  const read = nodes.filter((node) => node['Node Type'] === 'Seq Scan').map((node) => node['Relation Name'])
  expect(read.filter((table) => table?.startsWith('runs_') !== true)).toEqual([])
}

function whole(lane: string): LaneFrom {
  return { lane, after: undefined }
}

const UNKNOWN_ID = '018f0000-0000-7000-8000-000000000001'

/** Inserts 20,000 schedules of 200 tenants, with a slot every second. */
async function insertHerd({ pool }: TestDatabase): Promise<void> {
  await pool.query(`
    with grants as (
      insert into carillon.execution_grants (
        id, tenant_id, project_id, subject, scopes, created_by_subject, created_at, schedule_id
      )
      select id, 'tenant-' || n % 200, 'web', 'user:alice', '{test:dispatch:bell}', 'user:alice', now(), id
      from (select n, gen_random_uuid() as id from generate_series(1, 20000) as n) as made
      returning *
    )
    insert into carillon.schedules (id, tenant_id, project_id, owner_subject, target_kind, state, revision, grant_id,
      next_slot_at, due_at, auto_pause_threshold, created_by_subject, created_at)
    select id, tenant_id, project_id, subject, 'test', 'active', 1, id,
      date_trunc('milliseconds', now()) + ordinal * interval '1 second',
      date_trunc('milliseconds', now()) + ordinal * interval '1 second', 10, subject, now()
    from (select grants.*, row_number() over () as ordinal from grants) as herd`)
  await pool.query('vacuum analyze carillon.schedules')
}

test('a claim takes a slot at its instant and not a millisecond earlier, even if another slot of its lane is due (I10)', async () => {
  await using pipeline = await Pipeline.at('2026-03-02T09:00:00Z')
  const { clock, workerDb: db } = pipeline
  const worker = pipeline.worker()
  const due = await pipeline.create()
  const later = await pipeline.create({ cadence: { kind: 'once', at: '2026-03-02T09:01:00.001Z' } })
  clock.advance(MINUTE)
  await worker.heartbeat.runOnce()
  const claim = (): Promise<readonly string[]> =>
    transact(db, clock, async (tx) => {
      const workerId = worker.lease.workerId ?? ''
      const at = { workerId, now: clock.databaseNow() }
      const { schedules } = await claimDue(tx, { lanes: lanesOf(['test']).map(whole), perLane: 10, ...at })
      return schedules.map(({ id }) => id)
    })

  expect(await claim()).toEqual([due.id])
  clock.advance(1)
  expect(await claim()).toEqual([due.id, later.id])
})

/** Creates a schedule whose slot is `ms` ahead of the clock of Postgres. */
async function slotIn(
  database: TestDatabase,
  scheduler: Scheduler,
  ms: number,
  input: Partial<ScheduleInput> = {},
): Promise<{ id: string; slotAt: number }> {
  const { id } = await scheduler.create(CALLER, { ...EVERY_MINUTE, ...input })
  return { id, slotAt: await moveSlot(database, id, ms) }
}

async function moveSlot(database: TestDatabase, id: string, ms: number): Promise<number> {
  const { rows } = await database.pool.query<{ slot: Date }>(
    `update carillon.schedules
     set next_slot_at = date_trunc('milliseconds', clock_timestamp()) + $2 * interval '1 millisecond',
       due_at = date_trunc('milliseconds', clock_timestamp()) + $2 * interval '1 millisecond'
     where id = $1
     returning next_slot_at as slot`,
    [id, ms],
  )
  return rows[0]?.slot.getTime() ?? Number.NaN
}

/** Resolves with true once Postgres delays the commit, or with false if the instant came earlier, on a slow machine. */
async function whenDelayed({ pool }: TestDatabase, begun: Promise<unknown>): Promise<boolean> {
  const sleeping = `select from pg_stat_activity where wait_event = 'PgSleep' and datname = current_database()`
  const over = begun.then(() => false)
  const look = async (): Promise<true | undefined> => ((await pool.query(sleeping)).rowCount === 0 ? undefined : true)
  for (;;) {
    const isDelayed = await Promise.race([over, look()])
    if (isDelayed !== undefined) return isDelayed
  }
}

test('a slot that is prepared ahead begins at its instant and not earlier, and a pause meanwhile takes effect after it (I3, I10)', async () => {
  const { database } = await pipelineAt(START)
  await using worker = productionWorker(database)
  const { scheduler, heartbeat, begin } = worker
  await heartbeat.runOnce()
  // A first begin warms up the connection, so that the next one takes only milliseconds.
  await begin((await slotIn(database, scheduler, -HOUR)).slotAt)
  const { id, slotAt } = await slotIn(database, scheduler, 95)

  const beginning = begin(slotAt)
  const isDelayed = await whenDelayed(database, beginning)
  const paused = scheduler.pause(CALLER, id, { reason: 'night' }).then(() => databaseNow(database))
  const { begun, now } = await beginning

  expect(await databaseNow(database)).toBeGreaterThanOrEqual(slotAt)
  expect(now).toBeGreaterThanOrEqual(slotAt)
  expect(isDelayed ? now : slotAt).toBe(slotAt)
  expect(begun.map(({ scheduleId, startedAt }) => ({ scheduleId, startedAt }))).toEqual([
    { scheduleId: id, startedAt: now },
  ])
  expect(await paused).toBeGreaterThanOrEqual(slotAt)
  expect(await scheduler.get(CALLER, id)).toMatchObject({ state: 'paused' })
})

test('a slot that is too far ahead to be prepared is not begun, and the worker does not wait for it (I10)', async () => {
  const { database } = await pipelineAt(START)
  await using worker = productionWorker(database)
  const { scheduler, heartbeat, begin } = worker
  await heartbeat.runOnce()
  const { id, slotAt } = await slotIn(database, scheduler, HOUR)

  expect((await begin(slotAt)).begun).toEqual([])
  expect(await scheduler.get(CALLER, id)).toMatchObject({ state: 'active', nextSlotAt: slotAt })
})

test('a worker that prepared a slot and came late records it as missed, with the right instant (I11)', async () => {
  const { database } = await pipelineAt(START)
  await using worker = productionWorker(database)
  const { scheduler, heartbeat, begin } = worker
  await heartbeat.runOnce()
  const { slotAt } = await slotIn(database, scheduler, -3000, {
    // With a cadence of every minute, a second slot could lie in these three seconds.
    cadence: { kind: 'cron', expression: '@yearly' },
    policy: { startingDeadlineSeconds: 1 },
  })

  expect((await begin(slotAt)).begun).toEqual([])

  const { rows } = await database.pool.query(`
    select state, reason, begun_at > scheduled_for + interval '2 seconds' as is_late from carillon.runs`)
  expect(rows).toEqual([{ state: 'skipped', reason: 'missed', is_late: true }])
})

test('a worker whose lease expired while it prepared a slot begins nothing (I12)', async () => {
  const { database } = await pipelineAt(START)
  await using worker = productionWorker(database)
  const { scheduler, heartbeat, begin } = worker
  await heartbeat.runOnce()
  const { slotAt } = await slotIn(database, scheduler, -3000)
  await database.pool.query(`update carillon.workers set lease_expires_at = now() - interval '1 second'`)

  expect((await begin(slotAt)).plans).toEqual([])
})

test('a run that ends after the next slot was prepared and before its instant is no overlap', async () => {
  const { database } = await pipelineAt(START)
  const ended: (number | null)[] = []
  // A running run ends as soon as the worker has read it.
  const connect = (pool: Parameters<typeof createDb>[0]): Db =>
    watchedDb(pool, async ({ text }) => {
      if (!text.includes('as open_runs')) return
      const { rowCount } = await database.pool.query(
        `update carillon.runs set state = 'succeeded', worker_id = null, completed_at = now() where state = 'running'`,
      )
      ended.push(rowCount)
    })
  await using worker = productionWorker(database, connect)
  const { scheduler, heartbeat, begin } = worker
  await heartbeat.runOnce()
  const { id, slotAt: firstAt } = await slotIn(database, scheduler, -1000)
  await begin(firstAt)

  const { begun } = await begin(await moveSlot(database, id, 95))

  // The first begin found no running run. The second begin read the runs twice: ahead, and at the instant.
  expect(ended).toEqual([0, 1, 0])
  expect(begun).toHaveLength(1)
})

test('if two workers prepare the same slot, its target is called once, and not before its instant (I2, I10)', async () => {
  const { database } = await pipelineAt(START)
  await using one = productionWorker(database)
  await using two = productionWorker(database)
  const called = Promise.withResolvers<number>()
  for (const { target, heartbeat } of [one, two]) {
    target.script = async () => {
      called.resolve(await databaseNow(database))
      return SUCCEEDED
    }
    await heartbeat.runOnce()
  }
  const { slotAt } = await slotIn(database, one.scheduler, 60)
  for (const { loop } of [one, two]) loop.start()

  expect(await called.promise).toBeGreaterThanOrEqual(slotAt)
  for (const { loop } of [one, two]) await loop.drain(HOUR)
  expect([...one.target.calls, ...two.target.calls]).toHaveLength(1)
})

type Query = (query: { readonly text: string }) => unknown

/** A pool whose transactions stop before their first row lock, until the test lets them continue. */
function stoppedAtLocks(connectionString: string) {
  const [reached, continueAll] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
  const pool = createPool({ connectionString })
  pool.on('connect', (client) => {
    const query: Query = client.query.bind(client)
    const stopped: Query = (statement) => {
      if (!/for (no key )?update/.test(statement.text)) return query(statement)
      reached.resolve()
      return continueAll.promise.then(() => query(statement))
    }
    client.query = stopped as typeof client.query
  })
  return { pool, whenReached: () => reached.promise, continueAll: () => continueAll.resolve() }
}

test('a run does not end before its last attempt, even if the transaction that ends it began earlier', async () => {
  const { database } = await pipelineAt(START)
  await using worker = productionWorker(database)
  const { scheduler: ownScheduler, loop, heartbeat, target } = worker
  const { pool, whenReached, continueAll } = stoppedAtLocks(database.url)
  const otherScheduler = new Scheduler({ db: createDb(pool), targets: new Map<string, Target>([['test', target]]) })
  const { id: scheduleId } = await ownScheduler.create(CALLER, {
    ...EVERY_MINUTE,
    cadence: { kind: 'cron', expression: '0 0 1 1 *', timezone: 'UTC' },
  })
  const { id } = await ownScheduler.runNow(CALLER, scheduleId)
  const { script, answer } = held()
  target.script = script
  await heartbeat.runOnce()
  expect(await loop.runOnce()).toMatchObject({ taken: 1 })
  await target.whenCalled(1)

  const cancelled = otherScheduler.cancel(CALLER, id)
  await whenReached()
  answer(FAIL)
  await loop.whenIdle()
  continueAll()
  await cancelled
  await pool.end()

  const { rows } = await database.pool.query<{ state: string; microseconds: number }>(`
    select runs.state, (extract(epoch from runs.completed_at - attempts.completed_at) * 1000000)::int as microseconds
    from carillon.runs join carillon.attempts using (schedule_id, scheduled_for)`)
  expect(rows).toMatchObject([{ state: 'cancelled' }])
  expect(rows[0]?.microseconds).toBeGreaterThanOrEqual(0)
})

test('a run and its last attempt end at the same instant, which is not before either started', async () => {
  const { database } = await pipelineAt(START)
  await using worker = productionWorker(database)
  const { scheduler, loop, heartbeat, target } = worker
  const outcomes = [SUCCEEDED, FAIL_FOR_GOOD, { kind: 'cancelled' } as const]
  target.script = () => outcomes[target.calls.length % outcomes.length] ?? SUCCEEDED
  await heartbeat.runOnce()
  for (let runs = 0; runs < 6; runs += 1) {
    const cadence = { kind: 'cron', expression: '0 0 1 1 *', timezone: 'UTC' }
    const { id } = await scheduler.create(CALLER, { ...EVERY_MINUTE, cadence })
    await scheduler.runNow(CALLER, id)
  }

  while ((await loop.runOnce()).taken > 0) await loop.whenIdle()
  await loop.whenIdle()

  const { rows } = await database.pool.query(`
    select runs.state, bool_and(runs.completed_at = attempts.completed_at) as is_one_end,
      bool_and(attempts.started_at <= attempts.completed_at and runs.begun_at <= attempts.started_at) as is_in_order
    from carillon.runs join carillon.attempts using (schedule_id, scheduled_for)
    group by runs.state order by runs.state`)
  const inOrder = { is_one_end: true, is_in_order: true }
  expect(rows).toEqual([
    { state: 'succeeded', ...inOrder },
    { state: 'failed', ...inOrder },
    { state: 'cancelled', ...inOrder },
  ])
})

test('a slot that comes due while a failure waits for the schedule’s lock gets its line before the auto-pause (I6)', async () => {
  await using database = await createDatabase()
  await using worker = productionWorker(database)
  const { scheduler, loop, heartbeat, target } = worker
  const { id } = await scheduler.create(CALLER, { ...EVERY_MINUTE, policy: { autoPauseThreshold: 3 } })
  const isDueNow = `next_slot_at = date_trunc('milliseconds', clock_timestamp()), due_at = date_trunc('milliseconds', clock_timestamp())`
  await database.pool.query(`update carillon.schedules set ${isDueNow}, consecutive_failures = 2 where id = $1`, [id])
  const { script, answer } = held()
  target.script = script
  await heartbeat.runOnce()
  await loop.runOnce()
  await target.whenCalled(1)

  const holder = await holdSchedule(database, id)
  answer(FAIL_FOR_GOOD)
  await whenBlocked({ database })
  await holder.query(`update carillon.schedules set ${isDueNow} where id = $1`, [id])
  await holder.query('commit')
  await holder.end()
  await loop.whenIdle()
  await loop.runOnce()

  expect(await scheduler.get(CALLER, id)).toMatchObject({ state: 'paused', pausedReason: 'auto:consecutive_failures' })
  const lines = (await scheduler.listRuns(CALLER, id, { limit: 10 })).map(({ state, reason }) => [state, reason])
  expect(lines).toEqual([
    ['skipped', 'paused'],
    ['failed', null],
  ])
})

test.each([
  ['paused', (scheduler: Scheduler, id: string) => scheduler.pause(CALLER, id, { reason: 'by the test' })],
  ['edited', (scheduler: Scheduler, id: string) => scheduler.edit(CALLER, id, { name: 'other' }, { revision: 1 })],
  ['deleted', (scheduler: Scheduler, id: string) => scheduler.delete(CALLER, id)],
])(
  'a schedule that another transaction has locked is %s at the instant at which the lock is released',
  async (change, make) => {
    await using database = await createDatabase()
    await using worker = productionWorker(database)
    const { scheduler } = worker
    const { id } = await scheduler.create(CALLER, EVERY_MINUTE)

    const holder = await holdSchedule(database, id)
    const making = make(scheduler, id)
    await whenBlocked({ database })
    const { rows } = await holder.query<{ now: Date }>('select clock_timestamp() as now')
    await holder.query('commit')
    await holder.end()
    await making

    const changes = await database.pool.query<{ changed_at: Date }>(
      'select changed_at from carillon.schedule_changes where schedule_id = $1 and change = $2',
      [id, change],
    )
    expect(changes.rows[0]?.changed_at.getTime()).toBeGreaterThanOrEqual(rows[0]?.now.getTime() ?? Infinity)
  },
)

async function holdSchedule({ url }: TestDatabase, id: string): Promise<pg.Client> {
  const holder = new pg.Client({ connectionString: url })
  await holder.connect()
  await holder.query('begin')
  await holder.query('select from carillon.schedules where id = $1 for update', [id])
  return holder
}
