import { setImmediate } from 'node:timers/promises'

import { expect, test } from 'vitest'

import { createDb } from '../../src/db/database.ts'
import { systemClock } from '../../src/kernel/clock.ts'
import type { ServiceFailure } from '../../src/kernel/failure-record.ts'
import type { Pipeline as WorkerPipeline } from '../../src/pipeline/pipeline.ts'
import type { Target } from '../../src/ports/target.ts'
import { Scheduler } from '../../src/scheduler.ts'
import { Worker } from '../../src/worker.ts'
import { createDatabase, type TestDatabase } from '../database.ts'
import { emptiedPipelines } from '../emptied-pipeline.ts'
import { pipelineOf } from '../pipeline-parts.ts'
import { CALLER, MINUTE, type Pipeline } from '../pipeline.ts'
import { ProcessClock } from '../process-clock.ts'
import { FAIL, ScriptedTarget, SUCCEEDED } from '../scripted-target.ts'
import { sql } from '../sql.ts'

const pipelineAt = emptiedPipelines()
const NEXT_YEAR = { kind: 'once', at: '2027-03-02T09:00:00Z' }

function failureOf({ parts }: Pick<WorkerPipeline, 'parts'>, name: string): ServiceFailure | undefined {
  return parts.find((part) => part.name === name)?.failure
}

/** Resolves once the row of the only worker, which it writes with each beat, meets a condition. */
async function whenReported({ pool }: TestDatabase, condition: string): Promise<void> {
  while ((await pool.query(`select from carillon.workers where ${condition}`)).rowCount === 0) continue
}

test('a worker that cannot write settlements reports the failure with its heartbeat until it can write them', async () => {
  await using database = await createDatabase()
  const target = new ScriptedTarget()
  target.script = () => SUCCEEDED
  const targets = new Map<string, Target>([[target.kind, target]])
  const scheduler = new Scheduler({ db: createDb(database.pool), clock: systemClock, targets })
  await using worker = new Worker({ databaseUrl: database.url, targets: [target], heartbeatMs: 200 })
  await worker.start()
  await database.pool.query('revoke insert on carillon.attempts from carillon_worker')
  const { id } = await scheduler.create(CALLER, { name: 'x', cadence: NEXT_YEAR, target: { kind: 'test' } })
  await scheduler.runNow(CALLER, id)

  await whenReported(database, `(failing -> 'settle queue' ->> 'failures')::int >= 2`)
  expect(worker.failing).toMatchObject({ 'settle queue': { error: 'permission denied for table attempts' } })
  await database.pool.query('grant insert on carillon.attempts to carillon_worker')
  await whenReported(database, `failing -> 'settle queue' is null`)

  expect(worker.failing?.['settle queue']).toBeUndefined()
  expect(await scheduler.listRuns(CALLER, id, { limit: 1 })).toMatchObject([{ state: 'succeeded' }])
})

test('a worker whose idle connections break reports it with its heartbeat', async () => {
  await using database = await createDatabase()
  await using worker = new Worker({ databaseUrl: database.url, targets: [new ScriptedTarget()], heartbeatMs: 200 })
  await worker.start()

  while (worker.failing?.['pool'] === undefined) {
    await database.pool.query(
      `select pg_terminate_backend(pid) from pg_stat_activity
       where datname = current_database() and application_name = 'carillon worker' and state = 'idle'`,
    )
  }

  await whenReported(database, `failing -> 'pool' is not null`)
  expect(worker.failing).toMatchObject({ pool: { failures: expect.any(Number) as number } })
})

test('a worker also reports failures of other parts of its process', async () => {
  await using database = await createDatabase()
  const failure = { failures: 2, forMs: 1500, error: 'the database is away' }
  const otherParts = [
    { name: 'feed', failure },
    { name: 'api pool', failure: undefined },
  ]
  await using worker = new Worker({ databaseUrl: database.url, targets: [new ScriptedTarget()], otherParts })

  expect(worker.failing).toEqual({ feed: failure })
})

/** A clock that records how long its users slept. */
class WatchedProcessClock extends ProcessClock {
  readonly sleeps: number[] = []

  override sleep(ms: number, signal?: AbortSignal): Promise<void> {
    this.sleeps.push(ms)
    return super.sleep(ms, signal)
  }
}

/** Makes every insert of an attempt fail. By default the error code does not blame a row. */
async function refuseAttempts({ db }: Pipeline, code = 'raise_exception'): Promise<void> {
  await sql`
    create function carillon.refuse() returns trigger language plpgsql as $$
    begin raise exception 'refused' using errcode = ${sql.lit(code)}; end $$`.execute(db)
  await sql`
    create trigger refuse before insert on carillon.attempts for each row execute function carillon.refuse()`.execute(
    db,
  )
}

async function acceptAttempts({ db }: Pipeline): Promise<void> {
  await sql`drop function carillon.refuse cascade`.execute(db)
}

test.each([
  ['Postgres is at fault', 'raise_exception', SUCCEEDED],
  ['Postgres is at fault and the batch needs locks', 'raise_exception', FAIL],
  ['a row is at fault', 'program_limit_exceeded', FAIL],
])(
  'if %s, the settle queue backs off up to five seconds, and begins again with a short pause after a success',
  async (_why, code, outcome) => {
    const pipeline = await pipelineAt('2026-03-02T09:00:00Z')
    const clock = new WatchedProcessClock(pipeline.clock)
    const worker = pipeline.worker('worker', 200, { clock })
    const schedule = await pipeline.create()
    pipeline.target.script = () => outcome
    /** Waits for this many pauses to begin, and lets all but the last one pass. */
    const pausesFrom = async (first: number, count: number): Promise<void> => {
      for (let pause = first; pause < first + count; pause += 1) {
        while (clock.sleeps.length <= pause) await setImmediate()
        if (pause < first + count - 1) await pipeline.pass(clock.sleeps[pause] ?? 0, worker)
      }
    }
    await refuseAttempts(pipeline, code)

    await pipeline.pass(MINUTE, worker)
    await worker.startDue()
    await pausesFrom(0, 7)
    expect(clock.sleeps).toEqual([250, 500, 1000, 2000, 4000, 5000, 5000])
    expect(failureOf(worker.loop, 'settle queue')).toEqual({ failures: 7, forMs: 12_750, error: 'refused' })
    await acceptAttempts(pipeline)
    const settled = worker.whenSettled()
    await pipeline.pass(5000, worker)
    await settled
    await worker.loop.whenIdle()
    expect(failureOf(worker.loop, 'settle queue')).toBeUndefined()

    await refuseAttempts(pipeline, code)
    await pipeline.scheduler.runNow(CALLER, schedule.id)
    await worker.startDue()
    await pausesFrom(7, 1)
    expect(clock.sleeps.slice(7)).toEqual([250])
    await acceptAttempts(pipeline)
    const idle = worker.loop.whenIdle()
    await pipeline.pass(250, worker)
    await idle
  },
)

test('permissions that cannot be read count as a failure of the pipeline loop until they can be read', async () => {
  const pipeline = await pipelineAt('2026-03-02T09:00:00Z')
  const { database, scheduler } = pipeline
  const worker = pipeline.worker()
  const schedule = await pipeline.create({ cadence: NEXT_YEAR })
  await scheduler.runNow(CALLER, schedule.id)

  await database.pool.query('revoke select on carillon.tenants from carillon_worker')
  await worker.runDue()
  expect(failureOf(worker.loop, 'permissions')).toMatchObject({
    failures: 1,
    error: 'permission denied for table tenants',
  })
  await database.pool.query('grant select on carillon.tenants to carillon_worker')
  await pipeline.pass(20_000, worker)
  await worker.runDue()

  expect(failureOf(worker.loop, 'permissions')).toBeUndefined()
  expect(await pipeline.lines(schedule)).toEqual(['09:00 succeeded'])
})

test('a fault in the worker’s own code counts as a failure of the dispatcher until a minute passes without another', async () => {
  const pipeline = await pipelineAt('2026-03-02T09:00:00Z')
  const { clock, workerDb: db, targets } = pipeline
  const { events, lease, heartbeat } = pipeline.worker()
  class Faulty extends Map<string, Target> {
    override get(): Target | undefined {
      throw new TypeError('a fault in our code')
    }
  }
  const loop = pipelineOf({ db, clock, events, lease, targets: new Faulty(targets) })
  await pipeline.create()
  clock.advance(MINUTE)
  await heartbeat.runOnce()

  await loop.runOnce()
  await loop.whenIdle()
  expect(failureOf(loop, 'dispatcher')).toEqual({ failures: 1, forMs: 0, error: 'a fault in our code' })
  clock.advance(MINUTE)

  expect(failureOf(loop, 'dispatcher')).toBeUndefined()
})
