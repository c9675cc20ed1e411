import { expect, test } from 'vitest'

import type { AuditCounts } from '../../src/audit/auditor.ts'
import type { ErrorCode } from '../../src/kernel/errors.ts'
import { CarillonError } from '../../src/kernel/errors.ts'
import type { Schedule } from '../../src/ledger/records.ts'
import { Fleet, type FleetWorker } from '../fleet.ts'
import { ANY_NUMBER, CALLER, EVERY_MINUTE, MINUTE } from '../pipeline.ts'
import { FAIL, FAIL_FOR_GOOD, SUCCEEDED, type Script } from '../scripted-target.ts'

/** The kinds of findings that an audit found at least once. */
function found({ findings }: AuditCounts): [string, number][] {
  return Object.entries(findings).filter(([, count]) => count > 0)
}

/** A pseudo-random generator of numbers in [0, 1): the same seed gives the same numbers. */
function seededRandom(seed: number): () => number {
  let state = seed
  return () => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
}

function create(worker: FleetWorker, index: number, policy: object = {}): Promise<Schedule> {
  const caller = { ...CALLER, tenantId: `tenant-${index % 12}` }
  return worker.scheduler.create(caller, { ...EVERY_MINUTE, name: `schedule ${index}`, policy })
}

test('two workers run each of eight slots of 1,000 schedules exactly once, and an audit finds nothing (I2)', async () => {
  await using fleet = await Fleet.at('2026-03-02T09:00:30Z', 2, ANY_NUMBER)
  const { target, workers, database } = fleet
  const [schedules, slots] = [1000, 8]
  await Promise.all(Array.from({ length: schedules }, (_, index) => create(workers[index % 2] as FleetWorker, index)))
  for (const { loop } of workers) loop.start()

  for (let slot = 1; slot <= slots; slot += 1) {
    fleet.step(MINUTE)
    await fleet.whenSettled(slot * schedules)
  }
  const audit = await fleet.audit()
  await fleet.stop()

  const keys = target.calls.map(({ idempotencyKey }) => idempotencyKey)
  expect(new Set(keys).size).toBe(schedules * slots)
  expect(keys).toHaveLength(schedules * slots)
  const { rows } = await database.pool.query(
    `select state, attempt_count, count(*)::int, count(distinct (schedule_id, scheduled_for))::int as slots,
       count(distinct scheduled_for)::int as minutes
     from carillon.runs group by state, attempt_count`,
  )
  expect(rows).toEqual([
    { state: 'succeeded', attempt_count: 1, count: schedules * slots, slots: schedules * slots, minutes: slots },
  ])
  expect(found(audit)).toEqual([])
  expect(audit).toMatchObject({ slots: schedules * slots, truncated: 0 })
  for (const { settled, failures } of workers) {
    expect(settled).toBeGreaterThan(0)
    expect(failures).toEqual([])
  }
  expect(await fleet.deadlocks()).toBe(0)
})

test('if two workers claim the same due schedule at the same time, only one begins its slot (I2)', async () => {
  await using fleet = await Fleet.at('2026-03-02T09:00:30Z')
  const { target, workers, database } = fleet
  await create(workers[0] as FleetWorker, 1)
  const rounds = 60

  for (let round = 0; round < rounds; round += 1) {
    fleet.clock.advance(MINUTE)
    const counts = await Promise.all(workers.map(({ loop }) => loop.runOnce()))
    expect(counts.reduce((sum, { begun, skipped }) => sum + begun + skipped, 0)).toBe(1)
    await Promise.all(workers.map(({ loop }) => loop.whenIdle()))
  }

  expect(target.calls).toHaveLength(rounds)
  const { rows } = await database.pool.query('select count(*)::int as runs from carillon.runs')
  expect(rows).toEqual([{ runs: rounds }])
})

test('of concurrent edits that name the same revision, one succeeds and the others fail with a conflict', async () => {
  await using fleet = await Fleet.at('2026-03-02T09:00:30Z')
  const { workers } = fleet
  const [first, second] = workers as [FleetWorker, FleetWorker]
  const schedule = await create(first, 0)
  const caller = { ...CALLER, tenantId: schedule.tenantId }

  for (let revision = 1; revision <= 10; revision += 1) {
    const edits = Array.from({ length: 10 }, (_, index) =>
      (index % 2 === 0 ? first : second).scheduler.edit(
        caller,
        schedule.id,
        { name: `${revision}.${index}` },
        { revision },
      ),
    )
    const results = await Promise.allSettled(edits)

    expect(results.filter(({ status }) => status === 'fulfilled')).toHaveLength(1)
    for (const result of results) {
      if (result.status === 'rejected') expect(result.reason).toMatchObject({ code: 'revision_conflict' })
    }
  }
  expect(await first.scheduler.get(caller, schedule.id)).toMatchObject({ revision: 11 })
})

test('of concurrent manual runs under forbid, one succeeds and the others fail with an overlap', async () => {
  await using fleet = await Fleet.at('2026-03-02T09:00:30Z')
  const { workers, target } = fleet
  const [first, second] = workers as [FleetWorker, FleetWorker]
  const schedule = await create(first, 0, { overlap: 'forbid' })
  const caller = { ...CALLER, tenantId: schedule.tenantId }

  const results = await Promise.allSettled(
    Array.from({ length: 20 }, (_, index) => (index % 2 === 0 ? first : second).scheduler.runNow(caller, schedule.id)),
  )
  expect(await first.loop.runOnce()).toMatchObject({ taken: 1 })
  await first.loop.whenIdle()

  expect(results.filter(({ status }) => status === 'fulfilled')).toHaveLength(1)
  for (const result of results) {
    if (result.status === 'rejected') expect(result.reason).toMatchObject({ code: 'overlap' })
  }
  expect(target.calls).toHaveLength(1)
})

const OVERLAPS = ['forbid', 'queue', 'allow', 'replace'] as const
/** The errors of a request that came too late. */
const REFUSALS: readonly ErrorCode[] = [
  'schedule_not_found',
  'revision_conflict',
  'state_conflict',
  'overlap',
  'slot_not_found',
]

test.each([1, 2, 3])(
  'under random concurrent requests and two workers every slot has one line (I1, I2, I6), seed %i',
  async (seed) => {
    await using fleet = await Fleet.at('2026-03-02T09:00:30Z')
    const { workers, target, database } = fleet
    const schedules = await Promise.all(
      Array.from({ length: 40 }, (_, index) =>
        create(workers[index % 2] as FleetWorker, index, {
          overlap: OVERLAPS[index % 4],
          autoPauseThreshold: index % 3 === 0 ? 3 : 0,
          retry: { maxAttempts: 3, baseSeconds: 30, capSeconds: 60 },
        }),
      ),
    )
    target.script = randomOutcomes(seededRandom(seed))
    for (const { loop } of workers) loop.start()

    const randoms = [1, 2, 3, 4].map((caller) => seededRandom(100 * seed + caller))
    const rejections: ErrorCode[] = []
    // The clock stands still during each wave of changes, as the time of Postgres does within a transaction.
    for (let wave = 0; wave < 40; wave += 1) {
      fleet.step(15_000)
      const callers = randoms.map((random, index) =>
        changeAtRandom(workers[index % 2] as FleetWorker, schedules, { random, changes: 4 }),
      )
      const refusals = await Promise.all([...callers, workAll(fleet).then(() => [])])
      rejections.push(...refusals.flat())
    }
    target.script = () => SUCCEEDED
    for (let rest = 0; rest < 10; rest += 1) {
      fleet.step(30_000)
      await workAll(fleet)
    }
    await finish(fleet)
    const audit = await fleet.audit()
    await fleet.stop()

    expect(found(audit)).toEqual([])
    expect(rejections.filter((code) => !REFUSALS.includes(code))).toEqual([])
    expect(workers.flatMap(({ failures }) => failures)).toEqual([])
    const { rows: open } = await database.pool.query(
      `select state, waits_for, count(*)::int from carillon.runs where completed_at is null group by state, waits_for`,
    )
    expect(open).toEqual([])
    expect(await wronglyCounted(fleet)).toEqual([])
    expect(await overlappingRuns(fleet)).toEqual([])
    expect(await fleet.deadlocks()).toBe(0)
  },
)

/** A script that succeeds or fails at random, at once or a little later. */
function randomOutcomes(random: () => number): Script {
  return async (_context, signal) => {
    const fraction = random()
    for (let turns = Math.floor(random() * 20); turns > 0 && !signal.aborted; turns -= 1) await nextTurn()
    if (signal.aborted) return { kind: 'cancelled' }
    return fraction < 0.5 ? SUCCEEDED : fraction < 0.8 ? FAIL : FAIL_FOR_GOOD
  }
}

function nextTurn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve))
}

/** Each worker beats, rescues and wakes its loop. */
async function workAll(fleet: Fleet): Promise<void> {
  await Promise.all(
    fleet.workers.map(async (worker) => {
      await worker.beat()
      await worker.rescuer.runOnce()
      worker.loop.wake()
    }),
  )
}

/** Waits until no run is due or under way, while the clock stands still. */
async function finish(fleet: Fleet): Promise<void> {
  for (let left = -1; left !== 0;) {
    for (const { loop } of fleet.workers) loop.wake()
    await Promise.all(fleet.workers.map(({ loop }) => loop.whenIdle()))
    // A run that has just ended may have freed runs that waited for their turn, which are due now.
    const { rows } = await fleet.database.pool.query<{ due: number }>(
      `select ((select count(*) from carillon.schedules where due_at <= $1)
        + (select count(*) from carillon.runs where due_at <= $1 or state = 'running'))::int as due`,
      [fleet.clock.databaseNow()],
    )
    left = rows[0]?.due ?? 0
  }
}

/** Makes random changes. Returns the codes of the requests that were rejected. */
async function changeAtRandom(
  { scheduler }: FleetWorker,
  schedules: readonly Schedule[],
  { random, changes }: { random: () => number; changes: number },
): Promise<ErrorCode[]> {
  const rejections: ErrorCode[] = []
  for (let change = 0; change < changes; change += 1) {
    const { id, tenantId } = schedules[Math.floor(random() * schedules.length)] as Schedule
    const caller = { ...CALLER, tenantId }
    const kind = random()
    try {
      if (kind < 0.2) await editAtRandom(scheduler, caller, id, random)
      else if (kind < 0.4) await scheduler.pause(caller, id, { reason: 'at random' })
      else if (kind < 0.6) await scheduler.resume(caller, id)
      else if (kind < 0.75) await scheduler.runNow(caller, id)
      else if (kind < 0.85) await scheduler.skip(caller, id, (await scheduler.get(caller, id)).nextSlotAt ?? 0)
      else if (kind < 0.97) await cancelLatest(scheduler, caller, id)
      else await scheduler.delete(caller, id)
    } catch (error) {
      if (!(error instanceof CarillonError)) throw error
      rejections.push(error.code)
    }
  }
  return rejections
}

async function cancelLatest(scheduler: FleetWorker['scheduler'], caller: typeof CALLER, id: string): Promise<void> {
  const [run] = await scheduler.listRuns(caller, id, { limit: 1 })
  if (run !== undefined) await scheduler.cancel(caller, run.id)
}

async function editAtRandom(
  scheduler: FleetWorker['scheduler'],
  caller: typeof CALLER,
  id: string,
  random: () => number,
): Promise<void> {
  const { revision } = await scheduler.get(caller, id)
  const expression = random() < 0.5 ? '* * * * *' : '*/2 * * * *'
  const cadence = { kind: 'cron', expression, timezone: 'UTC' }
  const edit = random() < 0.5 ? { cadence } : { policy: { overlap: OVERLAPS[Math.floor(random() * 4)] } }
  await scheduler.edit(caller, id, edit, { revision: random() < 0.9 ? revision : 1 })
}

/** Pairs of runs that were under way at the same time although their schedule never had the policy `allow`. */
async function overlappingRuns({ database }: Fleet): Promise<unknown[]> {
  const { rows } = await database.pool.query<object>(`
    with spans as (
      select runs.schedule_id, runs.scheduled_for, attempts.started_at, attempts.completed_at
      from carillon.runs
      join carillon.attempts using (schedule_id, scheduled_for)
      where not exists (
        select from carillon.schedule_revisions as revisions
        where revisions.schedule_id = runs.schedule_id and revisions.policy ->> 'overlap' = 'allow'
      )
    )
    select a.schedule_id, a.scheduled_for, b.scheduled_for as other
    from spans as a join spans as b using (schedule_id)
    where a.scheduled_for < b.scheduled_for and a.started_at < b.completed_at and b.started_at < a.completed_at`)
  return rows
}

/** Schedules whose run_count differs from the number of their runs that were tried. */
async function wronglyCounted({ database }: Fleet): Promise<unknown[]> {
  const { rows } = await database.pool.query<object>(`
    select schedules.id, schedules.run_count, count(runs.id)::int as tried
    from carillon.schedules
    left join carillon.runs on runs.schedule_id = schedules.id and runs.attempt_count > 0
    group by schedules.id
    having schedules.run_count <> count(runs.id)`)
  return rows
}

test('a success that resets failures and a cancel of the same run take their locks in the same order', async () => {
  await using fleet = await Fleet.at('2026-03-02T09:00:30Z')
  const { workers, target, database } = fleet
  const [worker] = workers as [FleetWorker]
  const { id, tenantId } = await create(worker, 0, { retry: { maxAttempts: 1 } })
  const caller = { ...CALLER, tenantId }
  target.script = () => FAIL
  fleet.clock.advance(MINUTE)
  await worker.loop.runOnce()
  await worker.loop.whenIdle()
  const answer = Promise.withResolvers<void>()
  target.script = () => answer.promise.then(() => SUCCEEDED)
  fleet.clock.advance(MINUTE)
  await worker.loop.runOnce()
  const [run] = await worker.scheduler.listRuns(caller, id, { limit: 1 })
  const holder = await database.pool.connect()
  await holder.query('begin')
  await holder.query('select from carillon.schedules for update')

  answer.resolve()
  await whenBlocked(fleet)
  // The update that a cancel makes while it holds the lock of the schedule.
  await holder.query('update carillon.runs set cancel_requested_at = now() where id = $1', [run?.id])
  await holder.query('commit')
  holder.release()
  await worker.loop.whenIdle()
  await fleet.stop()

  expect(worker.failures).toEqual([])
  expect(await fleet.deadlocks()).toBe(0)
  const { rows } = await database.pool.query('select state from carillon.runs order by scheduled_for')
  expect(rows).toEqual([{ state: 'failed' }, { state: 'succeeded' }])
})

async function whenBlocked({ database }: Fleet): Promise<void> {
  for (;;) {
    const { rows } = await database.pool.query(
      `select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`,
    )
    if (rows.length > 0) return
  }
}

test('concurrent settlements, cancels and begins of the same schedules never deadlock', async () => {
  await using fleet = await Fleet.at('2026-03-02T09:00:30Z')
  const { workers, target } = fleet
  const schedules = await Promise.all(
    Array.from({ length: 30 }, (_, index) =>
      create(workers[0] as FleetWorker, 0, {
        overlap: index % 2 === 0 ? 'allow' : 'replace',
        autoPauseThreshold: 0,
        retry: { maxAttempts: 1 },
      }),
    ),
  )
  const random = seededRandom(4)
  // Half of the runs fail, so that most successes reset a count of failures.
  target.script = async (_context, signal) => {
    for (let turns = Math.floor(random() * 10); turns > 0 && !signal.aborted; turns -= 1) await nextTurn()
    return random() < 0.5 ? SUCCEEDED : FAIL
  }
  for (const { loop } of workers) loop.start()

  for (let round = 0; round < 30; round += 1) {
    fleet.step(MINUTE)
    await Promise.all(
      schedules.map(async ({ id, tenantId }, index) => {
        const { scheduler } = workers[index % 2] as FleetWorker
        const caller = { ...CALLER, tenantId }
        const [run] = await scheduler.listRuns(caller, id, { limit: 1 })
        if (run?.completedAt === null) await scheduler.cancel(caller, run.id).catch(() => undefined)
      }),
    )
    await Promise.all(workers.map((worker) => worker.beat()))
    for (const { loop } of workers) loop.wake()
  }
  await finish(fleet)
  await fleet.stop()

  expect(workers.flatMap(({ failures }) => failures)).toEqual([])
  expect(await fleet.deadlocks()).toBe(0)
  expect(target.calls.length).toBeGreaterThan(30 * 10)
})
