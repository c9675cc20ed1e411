import { createDb, createPool, ensurePartitions, migrate } from '@carillon/core'
import { Logger, runMigrations, type Runner } from 'graphile-worker'
import type { Pool } from 'pg'

import { nowMs, within } from '../clock.ts'
import { leadOf, requireAhead } from '../lead-time.ts'
import { loadSchedules } from '../load-schedules.ts'
import type { Creation, Drain, Ground, Lateness, Peer } from '../measure.ts'
import { openPool as openLedger } from '../works/bench-pool.ts'
import { requireMade, requireWholeLedger } from '../works/written-rows.ts'
import { addJobs, GRAPHILE_CONNECTIONS, GRAPHILE_POLL_MS, openPool, runGraphile, type Queryable } from './graphile.ts'
import { inTurn } from './in-turn.ts'
import { beginSlots, insertSchedule, settleSlots, type LedgerSlot } from './ledger.ts'
import { versionOf } from './package-version.ts'
import { drainOf, Tally } from './tally.ts'

const SCHEMA = 'slot_jobs'
const TENANT = 'job-per-slot'
const CONCURRENCY = 2000
const LEDGER_BATCH = 500
const YEAR_MS = 365 * 86_400_000
const DAY_MS = 86_400_000
const LEAD_MS = 4000
const LOAD_MS_PER_SCHEDULE = 0.5
const LATENESS_PATIENCE_MS = 30_000

/** Creates the schemas of Carillon and of the queue. */
async function prepare(ground: Ground): Promise<void> {
  const pool = createPool({ connectionString: ground.postgresUrl })
  const db = createDb(pool)
  try {
    await migrate(pool)
    await runMigrations({ pgPool: pool, schema: SCHEMA, logger: new Logger(() => () => undefined) })
    await ensurePartitions(db, { from: new Date(), to: new Date() })
  } finally {
    await pool.end()
  }
}

async function load(ground: Ground, slots: { count: number; firstSlotAt: number; spacingMs: number }): Promise<void> {
  const pool = createPool({ connectionString: ground.postgresUrl })
  try {
    await loadSchedules(pool, { ...slots, kind: 'noop', tenant: TENANT })
  } finally {
    await pool.end()
  }
}

/** Adds one job per schedule for its next slot, keyed by the slot. */
async function enqueueAll(pool: Pool): Promise<void> {
  const { rows } = await pool.query<LedgerSlot>(
    `select id as "scheduleId", to_json(next_slot_at) #>> '{}' as "scheduledFor" from carillon.schedules`,
  )
  await enqueue(pool, rows)
  await pool.query(`vacuum (analyze) ${SCHEMA}._private_jobs`)
}

function enqueue(on: Queryable, slots: readonly LedgerSlot[]): Promise<void> {
  const jobs = slots.map((slot) => ({
    payload: slot,
    runAt: slot.scheduledFor,
    key: `${slot.scheduleId}:${slot.scheduledFor}`,
  }))
  return addJobs(on, SCHEMA, jobs)
}

/**
 * Processes the jobs in the fastest known way. Before the target would be called it writes a slot's run. Afterwards it writes its attempt,
 * its state and the job of the next slot. Each step is in batches, as in Carillon's pipeline.
 */
function work(pool: Pool, on: { call: (slot: LedgerSlot) => void; settled: () => void }): Promise<Runner> {
  const begin = batched((slots) => inTransaction(pool, (client) => beginSlots(client, slots)))
  const settle = batched((slots) =>
    inTransaction(pool, async (client) => {
      await settleSlots(client, slots)
      await enqueue(client, slots.map(nextSlotOf))
    }),
  )
  return runGraphile({
    pool,
    schema: SCHEMA,
    concurrency: CONCURRENCY,
    localQueue: CONCURRENCY,
    async task(payload) {
      // `enqueue` wrote this payload.
      const slot = payload as LedgerSlot
      await begin(slot)
      on.call(slot)
      await settle(slot)
      on.settled()
    },
  })
}

function nextSlotOf({ scheduleId, scheduledFor }: LedgerSlot): LedgerSlot {
  return { scheduleId, scheduledFor: new Date(Date.parse(scheduledFor) + YEAR_MS).toISOString() }
}

/** Collects slots while a batch is being written. */
function batched(write: (slots: readonly LedgerSlot[]) => Promise<void>): (slot: LedgerSlot) => Promise<void> {
  let waiting: { slot: LedgerSlot; settle: PromiseWithResolvers<void> }[] = []
  let isWriting = false
  const writeAll = async (): Promise<void> => {
    isWriting = true
    while (waiting.length > 0) {
      const batch = waiting.slice(0, LEDGER_BATCH)
      waiting = waiting.slice(LEDGER_BATCH)
      try {
        await write(batch.map(({ slot }) => slot))
        for (const { settle } of batch) settle.resolve()
      } catch (error) {
        for (const { settle } of batch) settle.reject(error)
      }
    }
    isWriting = false
  }
  return (slot) => {
    const settle = Promise.withResolvers<void>()
    waiting.push({ slot, settle })
    if (!isWriting) void writeAll()
    return settle.promise
  }
}

async function inTransaction(pool: Pool, write: (client: Queryable) => Promise<void>): Promise<void> {
  const client = await pool.connect()
  try {
    await client.query('begin')
    await write(client)
    await client.query('commit')
    client.release()
  } catch (error) {
    // Closing the connection rolls back its transaction.
    client.release(true)
    throw error
  }
}

async function drain(ground: Ground, { count, patienceMs }: { count: number; patienceMs: number }): Promise<Drain> {
  await prepare(ground)
  const dueAt = Math.ceil(nowMs() + leadOf(LEAD_MS) + count * LOAD_MS_PER_SCHEDULE)
  await load(ground, { count, firstSlotAt: dueAt, spacingMs: 0 })
  const pool = openPool(ground.postgresUrl, GRAPHILE_CONNECTIONS)
  const [calls, ends] = [new Tally(count), new Tally(count)]
  let runner: Runner | undefined
  try {
    await enqueueAll(pool)
    runner = await work(pool, { call: () => calls.note(), settled: () => ends.note() })
    requireAhead(dueAt)
    await within(ends.complete, dueAt + patienceMs)
    await using ledger = openLedger(ground.postgresUrl)
    await requireWholeLedger(ledger, count, TENANT)
    return drainOf({ count, dueAt, firstAt: calls.firstAt, lastAt: ends.lastAt })
  } finally {
    await runner?.stop()
    await pool.end()
  }
}

async function lateness(ground: Ground, { slots, spacingMs }: { slots: number; spacingMs: number }): Promise<Lateness> {
  await prepare(ground)
  const firstAt = Math.ceil(nowMs() + leadOf(LEAD_MS))
  await load(ground, { count: slots, firstSlotAt: firstAt, spacingMs })
  const pool = openPool(ground.postgresUrl, GRAPHILE_CONNECTIONS)
  const late: number[] = []
  const ends = new Tally(slots)
  let runner: Runner | undefined
  try {
    await enqueueAll(pool)
    runner = await work(pool, {
      call: ({ scheduledFor }) => late.push(nowMs() - Date.parse(scheduledFor)),
      settled: () => ends.note(),
    })
    requireAhead(firstAt)
    await within(ends.complete, firstAt + slots * spacingMs + LATENESS_PATIENCE_MS)
    return late
  } finally {
    await runner?.stop()
    await pool.end()
  }
}

/** Writes the rows of a schedule, and in the same transaction the job of its first slot. */
async function create(ground: Ground, creates: { count: number; clients: number }): Promise<Creation> {
  await prepare(ground)
  const pool = openPool(ground.postgresUrl, creates.clients)
  try {
    const creation = await inTurn(creates, () =>
      inTransaction(pool, async (client) => {
        const slot = await insertSchedule(client, new Date(Math.ceil(nowMs()) + DAY_MS))
        await enqueue(client, [slot])
      }),
    )
    await requireMade(ground.postgresUrl, creates.count)
    return creation
  } finally {
    await pool.end()
  }
}

export const jobPerSlot: Peer = {
  name: 'a Graphile job per slot',
  version: versionOf('graphile-worker'),
  rounds: 1,
  leaves: "the same ledger as Carillon's, a run and an attempt, and the job of the next slot",
  setUp:
    `${CONCURRENCY} jobs at a time from a local queue, deleted in batches, the ledger in batches of ${LEDGER_BATCH}, ` +
    `polling every ${GRAPHILE_POLL_MS} ms`,
  drain,
  lateness,
  create,
}
