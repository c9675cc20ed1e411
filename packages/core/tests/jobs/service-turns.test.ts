import { randomUUID } from 'node:crypto'

import { expect, test } from 'vitest'

import type { Tx } from '../../src/db/database.ts'
import { createPool } from '../../src/db/pool.ts'
import type { ClaimedTurn } from '../../src/jobs/store/turns.ts'
import { TurnService, type Slice, type TurnServiceDeps } from '../../src/jobs/turn-service.ts'
import { emptiedPipelines } from '../emptied-pipeline.ts'
import { ownLease } from '../own-lease.ts'
import type { Pipeline } from '../pipeline.ts'
import { nodesOf, plansOf, recordingDb } from '../query-plan.ts'
import { sql } from '../sql.ts'

const pipelineAt = emptiedPipelines()

const SECOND = 1000
const MINUTE = 60 * SECOND

/** A service that counts its slices in its cursor and calls a function of the test in each. */
class Counting extends TurnService<{ readonly slice: number }> {
  override readonly name = 'counting'
  during: (turn: ClaimedTurn) => Promise<Partial<Slice<never>> | void> = () => Promise.resolve()
  turnsLost = 0

  readonly workerId: string | undefined

  constructor({ lease = ownLease(), ...deps }: Omit<TurnServiceDeps, 'lease'> & Partial<TurnServiceDeps>) {
    super({ ...deps, lease }, { turn: 'counting', lookMs: 2 * SECOND, pauseAfterFailureMs: SECOND })
    this.workerId = lease.workerId
  }

  protected override async slice(turn: ClaimedTurn): Promise<Slice<{ readonly slice: number }>> {
    const slice = ((turn.cursor as { slices?: number } | null)?.slices ?? 0) + 1
    const changes = (await this.during(turn)) ?? {}
    return { counts: { slice }, cursor: { slices: slice }, restMs: 10 * SECOND, ...changes }
  }

  protected override onTurnLost(): void {
    this.turnsLost += 1
  }
}

function servicesOf({ workerDb: db, clock, events }: Pipeline): [Counting, Counting] {
  return [new Counting({ db, clock, events }), new Counting({ db, clock, events })]
}

async function turnOf({ db }: Pipeline): Promise<{ slices: number; worker_id: string | null; next_at: Date }> {
  const { rows } = await sql<{ slices: number; worker_id: string | null; next_at: Date }>`
    select (cursor ->> 'slices')::integer as slices, worker_id, next_at
    from carillon.service_turns where name = 'counting'`.execute(db)
  const [row] = rows
  if (row === undefined) throw new Error('expected a turn, got none')
  return row
}

test('the first slice of a service is due at once, and the next one after its rest', async () => {
  const pipeline = await pipelineAt('2026-03-02T09:00:00Z')
  const [one] = servicesOf(pipeline)

  expect(await one.runOnce()).toEqual({ slice: 1 })
  expect(await one.runOnce()).toBeUndefined()
  pipeline.clock.advance(10 * SECOND - 1)
  expect(await one.runOnce()).toBeUndefined()
  pipeline.clock.advance(1)
  expect(await one.runOnce()).toEqual({ slice: 2 })
})

test('the turn stays with the worker that did the last slice, until that worker is ten seconds late', async () => {
  const pipeline = await pipelineAt('2026-03-02T09:00:00Z')
  const { clock } = pipeline
  const [one, two] = servicesOf(pipeline)
  await one.runOnce()

  clock.advance(10 * SECOND + 10 * SECOND - 1)
  expect(await two.runOnce()).toBeUndefined()
  expect(two.turnsLost).toBe(1)
  clock.advance(1)
  expect(await two.runOnce()).toEqual({ slice: 2 })

  expect(await one.runOnce()).toBeUndefined()
  expect([one.turnsLost, two.turnsLost]).toEqual([1, 1])
})

test('while one worker does a slice, no other worker does', async () => {
  const pipeline = await pipelineAt('2026-03-02T09:00:00Z')
  const [one, two] = servicesOf(pipeline)
  const seen: unknown[] = []
  one.during = async () => void seen.push(await two.runOnce())

  expect(await one.runOnce()).toEqual({ slice: 1 })

  expect(seen).toEqual([undefined])
})

test('if several workers claim at the same time, only one does the slice', async () => {
  const pipeline = await pipelineAt('2026-03-02T09:00:00Z')
  const { workerDb: db, clock, events } = pipeline
  const services = Array.from({ length: 8 }, () => new Counting({ db, clock, events }))

  const counts = await Promise.all(services.map((service) => service.runOnce()))

  expect(counts.filter((count) => count !== undefined)).toEqual([{ slice: 1 }])
})

test('a worker that was suspended until another worker had the turn stores nothing', async () => {
  const pipeline = await pipelineAt('2026-03-02T09:00:00Z')
  const { clock } = pipeline
  const [stopped, other] = servicesOf(pipeline)
  const written: string[] = []
  stopped.during = async () => {
    clock.advance(30 * SECOND)
    expect(await other.runOnce()).toEqual({ slice: 1 })
    return { cursor: { slices: 99 }, write: () => Promise.resolve(void written.push('stopped')) }
  }

  await stopped.runOnce()

  expect(await turnOf(pipeline)).toMatchObject({ slices: 1, worker_id: other.workerId })
  expect(written).toEqual([])
})

test('a slice stores nothing if the same worker has repeated it since, because an answer was lost', async () => {
  const pipeline = await pipelineAt('2026-03-02T09:00:00Z')
  const { workerDb: db, clock, events } = pipeline
  const lease = { workerId: randomUUID() }
  const [first, again] = [new Counting({ db, clock, events, lease }), new Counting({ db, clock, events, lease })]
  first.during = async () => {
    clock.advance(1)
    expect(await again.runOnce()).toEqual({ slice: 1 })
    return { cursor: { slices: 99 } }
  }

  await first.runOnce()

  expect(await turnOf(pipeline)).toMatchObject({ slices: 1 })
})

test('a worker that was suspended for long stores its slice if no other worker took the turn', async () => {
  const pipeline = await pipelineAt('2026-03-02T09:00:00Z')
  const [one] = servicesOf(pipeline)
  one.during = () => Promise.resolve(pipeline.clock.advance(10 * MINUTE))

  await one.runOnce()

  expect(await turnOf(pipeline)).toMatchObject({ slices: 1, worker_id: one.workerId })
})

test('one transaction stores the writes of a slice and its cursor', async () => {
  const pipeline = await pipelineAt('2026-03-02T09:00:00Z')
  const [one] = servicesOf(pipeline)
  await one.runOnce()
  pipeline.clock.advance(10 * SECOND)
  const write = async (tx: Tx): Promise<void> => {
    expect(
      (
        await sql<{
          slices: number
        }>`select (cursor ->> 'slices')::integer as slices from carillon.service_turns`.execute(tx)
      ).rows,
    ).toEqual([{ slices: 2 }])
    throw new Error('the disk is full')
  }
  one.during = () => Promise.resolve({ write })

  await expect(one.runOnce()).rejects.toThrow('the disk is full')

  expect(await turnOf(pipeline)).toMatchObject({ slices: 1 })
  one.during = () => Promise.resolve()
  expect(await one.runOnce()).toEqual({ slice: 2 })
})

test('a slice that failed is repeated by the same worker from the same cursor', async () => {
  const pipeline = await pipelineAt('2026-03-02T09:00:00Z')
  const [one, two] = servicesOf(pipeline)
  one.during = () => Promise.reject(new Error('no'))

  await expect(one.runOnce()).rejects.toThrow('no')
  expect(await two.runOnce()).toBeUndefined()
  one.during = () => Promise.resolve()

  expect(await one.runOnce()).toEqual({ slice: 1 })
})

test('a partial failure of a slice is thrown after its cursor is stored', async () => {
  const pipeline = await pipelineAt('2026-03-02T09:00:00Z')
  const [one] = servicesOf(pipeline)
  one.during = () => Promise.resolve({ failure: new Error('not this time') })

  await expect(one.runOnce()).rejects.toThrow('not this time')

  expect(await turnOf(pipeline)).toMatchObject({ slices: 1, next_at: new Date('2026-03-02T09:00:10Z') })
})

test('a worker without a lease claims no turn', async () => {
  const pipeline = await pipelineAt('2026-03-02T09:00:00Z')
  const { workerDb: db, clock, events } = pipeline
  const lease: { workerId: string | undefined } = { workerId: undefined }
  const service = new Counting({ db, clock, events, lease })

  expect(await service.runOnce()).toBeUndefined()
  lease.workerId = randomUUID()
  expect(await service.runOnce()).toEqual({ slice: 1 })
})

test('a worker that stops releases its turn, and the next one continues at once', async () => {
  const pipeline = await pipelineAt('2026-03-02T09:00:00Z')
  const [one, two] = servicesOf(pipeline)
  await one.runOnce()
  await one.stop()
  expect(await turnOf(pipeline)).toMatchObject({ worker_id: null })
  await one.stop()

  pipeline.clock.advance(10 * SECOND)
  expect(await two.runOnce()).toEqual({ slice: 2 })
  await one.stop()
  expect(await turnOf(pipeline)).toMatchObject({ worker_id: two.workerId })
  expect(pipeline.clock.waiting).toBe(0)
})

test('a started service does one slice after another until it is stopped', async () => {
  const pipeline = await pipelineAt('2026-03-02T09:00:00Z')
  const { clock } = pipeline
  const [one] = servicesOf(pipeline)
  const rests = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
  let slices = 0
  one.during = () => {
    const rest = rests[slices]
    slices += 1
    return Promise.resolve({ afterStored: () => setImmediate(() => rest?.resolve()) })
  }
  one.start()
  one.start()
  await rests[0]?.promise
  clock.advance(10 * SECOND)
  await rests[1]?.promise
  await one.stop()

  expect(slices).toBe(2)
  expect(clock.waiting).toBe(0)
})

test('a request makes the next slice due at once, even while one is in progress', async () => {
  const pipeline = await pipelineAt('2026-03-02T09:00:00Z')
  const { clock } = pipeline
  const [one] = servicesOf(pipeline)
  const request = (): Promise<unknown> =>
    sql`update carillon.service_turns set requested_at = ${clock.databaseNow()}, next_at = ${clock.databaseNow()} where name = 'counting'`.execute(
      pipeline.db,
    )
  const seen: (number | null)[] = []
  one.during = async ({ requestedAt }) => {
    seen.push(requestedAt)
    // This request came after the slice began, so this slice cannot answer it.
    if (seen.length === 2) {
      clock.advance(1)
      await request()
    }
    return { isAnswered: true }
  }
  await one.runOnce()
  await request()
  const requestedFirstAt = clock.instant

  expect(await one.runOnce()).toEqual({ slice: 2 })
  expect(await one.runOnce()).toEqual({ slice: 3 })
  expect(await one.runOnce()).toBeUndefined()

  expect(seen).toEqual([null, requestedFirstAt, requestedFirstAt + 1])
})

test('a worker that does not get the turn runs one statement that reads one row by its key', async () => {
  const pipeline = await pipelineAt('2026-03-02T09:00:00Z')
  const { clock, events, database } = pipeline
  const [holder] = servicesOf(pipeline)
  await holder.runOnce()
  const { db, queries } = recordingDb(createPool({ connectionString: database.url, role: 'carillon_worker' }))
  const other = new Counting({ db, clock, events })
  const versionOf = async (): Promise<unknown> =>
    (await sql`select xmin, xmax, ctid from carillon.service_turns`.execute(pipeline.db)).rows
  const before = await versionOf()

  for (let looks = 0; looks < 3; looks += 1) await other.runOnce()

  expect(queries).toHaveLength(3)
  expect(await versionOf()).toEqual(before)
  const [query] = queries
  const plans = query === undefined ? [] : await plansOf(pipeline.workerDb, query)
  const scans = plans.flatMap(nodesOf).filter((node) => node['Relation Name'] === 'service_turns')
  expect(new Set(scans.map((node) => node['Index Name'] ?? node['Node Type']))).toEqual(
    new Set(['service_turns_pkey', 'ModifyTable']),
  )
  await db.close()
})

test('every worker knows the lag of a service, which grows while no worker does a slice', async () => {
  const pipeline = await pipelineAt('2026-03-02T09:00:00Z')
  const { clock } = pipeline
  const [one, two] = servicesOf(pipeline)
  one.during = ({ now }) => Promise.resolve({ reachedAt: now - 90 * SECOND })
  expect([one.lagMs, two.lagMs]).toEqual([null, null])
  await one.runOnce()
  await two.runOnce()

  expect([one.lagMs, two.lagMs]).toEqual([90 * SECOND, 90 * SECOND])
  clock.advance(5 * SECOND)
  expect([one.lagMs, two.lagMs]).toEqual([95 * SECOND, 95 * SECOND])
})
