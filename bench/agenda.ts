/**
 * The agenda against a job per slot, on the same work: N schedules due at one instant, a target that does nothing, the
 * whole ledger written. And what a single create costs with and without a job in its transaction. Run: `npm run
 * bench:agenda`. Takes some two minutes. The figures to read are the ratios, which one run gives on one machine.
 *
 * Not measured: a target that takes time, several workers, a database that is not on this machine.
 */
import { createDb, createPool, Scheduler, Worker, type Target } from '@carillon/core'
import { z } from 'zod'

import { drainAgendaBare } from './bare-agenda.ts'
import { startBenchPostgres } from './bench-postgres.ts'
import { drainJobs, enqueueJobs } from './job-per-slot.ts'
import { loadSchedules } from './load-schedules.ts'

const SLOTS = Number(process.argv[2] ?? 20_000)
const CREATES = Number(process.argv[3] ?? 4000)
const ROUNDS = Number(process.argv[4] ?? 3)
const CLIENTS = 20
const WITHOUT_QUOTAS = { maxSchedulesPerProject: null, maxSchedulesPerUser: null }

function noopTarget(): Target {
  const schema = z.looseObject({ kind: z.string() })
  return {
    kind: 'noop',
    schema,
    retry: { maxAttempts: 1, baseSeconds: 1, capSeconds: 1 },
    requiredScope: () => 'noop:call:nothing',
    timeoutMs: () => 30_000,
    dispatch: () => Promise.resolve({ kind: 'succeeded', result: null }),
  }
}

/** Slots a second from the first claim to the last settle. */
async function drainAgenda(url: string): Promise<number> {
  const pool = createPool({ connectionString: url })
  await loadSchedules(pool, { count: SLOTS, kind: 'noop', firstSlotAt: Date.now() - 1000, spacingMs: 0 })
  const { promise, resolve } = Promise.withResolvers<void>()
  await using worker = new Worker({ databaseUrl: url, targets: [noopTarget()], concurrency: 4000 })
  let settled = 0
  let startedAt = 0
  worker.events.on('run.began', () => (startedAt ||= performance.now()))
  worker.events.on('attempt.settled', () => {
    settled += 1
    if (settled === SLOTS) resolve()
  })
  await worker.start()
  await promise
  const seconds = (performance.now() - startedAt) / 1000
  await pool.end()
  return SLOTS / seconds
}

async function drainJobPerSlot(url: string): Promise<number> {
  const pool = createPool({ connectionString: url, maxConnections: 20 })
  await loadSchedules(pool, { count: SLOTS, kind: 'noop', firstSlotAt: Date.now() - 1000, spacingMs: 0 })
  await enqueueJobs(pool)
  const seconds = await drainJobs(pool, SLOTS)
  await pool.end()
  return SLOTS / seconds
}

async function drainBareAgenda(url: string): Promise<number> {
  const pool = createPool({ connectionString: url, maxConnections: 20 })
  await loadSchedules(pool, { count: SLOTS, kind: 'noop', firstSlotAt: Date.now() - 1000, spacingMs: 0 })
  const seconds = await drainAgendaBare(pool, 'noop')
  await pool.end()
  return SLOTS / seconds
}

/** Creates a second through the library, by several clients at once. */
async function createAgenda(url: string): Promise<number> {
  const pool = createPool({ connectionString: url, maxConnections: CLIENTS, isPrepared: true })
  const target = noopTarget()
  const scheduler = new Scheduler({ db: createDb(pool), targets: new Map([[target.kind, target]]) }, WITHOUT_QUOTAS)
  const rate = await ratePerSecond((n) =>
    scheduler.create(
      { tenantId: 'default', projectId: 'default', subject: 'user:bench' },
      {
        name: `schedule ${n}`,
        cadence: { kind: 'cron', expression: `${n % 60} 3 * * *`, timezone: 'UTC' },
        target: { kind: 'noop' },
      },
    ),
  )
  await pool.end()
  return rate
}

/** The same rows, and the job of the first slot in the same transaction, as seed 000 asks. */
async function createWithJob(url: string): Promise<number> {
  const pool = createPool({ connectionString: url, maxConnections: CLIENTS, isPrepared: true })
  const target = noopTarget()
  const scheduler = new Scheduler({ db: createDb(pool), targets: new Map([[target.kind, target]]) }, WITHOUT_QUOTAS)
  const caller = { tenantId: 'default', projectId: 'default', subject: 'user:bench' }
  const rate = await ratePerSecond(async (n) => {
    const { id, nextSlotAt } = await scheduler.create(caller, {
      name: `schedule ${n}`,
      cadence: { kind: 'cron', expression: `${n % 60} 3 * * *`, timezone: 'UTC' },
      target: { kind: 'noop' },
    })
    await pool.query(
      `select carillon_jobs.add_job('execute_scheduled_run', json_build_object('scheduleId', $1::text),
        run_at => to_timestamp($2::float8 / 1000), job_key => $1 || ':' || $2)`,
      [id, nextSlotAt],
    )
  })
  await pool.end()
  return rate
}

async function ratePerSecond(create: (n: number) => Promise<unknown>): Promise<number> {
  let next = 0
  const client = async (): Promise<void> => {
    while (next < CREATES) {
      next += 1
      await create(next)
    }
  }
  const startedAt = performance.now()
  await Promise.all(Array.from({ length: CLIENTS }, client))
  return CREATES / ((performance.now() - startedAt) / 1000)
}

function median(values: readonly number[]): number {
  return values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? Number.NaN
}

const WORKS = { drainAgenda, drainBareAgenda, drainJobPerSlot, createAgenda, createWithJob }

await using postgres = await startBenchPostgres()
const rates = new Map<string, number[]>()
for (let round = 0; round < ROUNDS; round += 1) {
  for (const [name, work] of Object.entries(WORKS)) {
    const rate = await work(await postgres.createDatabase(`${name}_${round}`.toLowerCase()))
    rates.set(name, [...(rates.get(name) ?? []), rate])
    process.stdout.write(`round ${round + 1}: ${name} ${Math.round(rate)}/s\n`)
  }
}
const of = (name: keyof typeof WORKS): number => median(rates.get(name) ?? [])
process.stdout.write(`\nmedians of ${ROUNDS} rounds\n`)
process.stdout.write(`drain of ${SLOTS}, bare statements: agenda ${Math.round(of('drainBareAgenda'))}/s, `)
process.stdout.write(`a job per slot ${Math.round(of('drainJobPerSlot'))}/s, `)
process.stdout.write(`ratio ${(of('drainBareAgenda') / of('drainJobPerSlot')).toFixed(1)}\n`)
process.stdout.write(`drain of ${SLOTS} by a whole worker: ${Math.round(of('drainAgenda'))}/s\n`)
process.stdout.write(`${CREATES} creates by ${CLIENTS} clients: agenda ${Math.round(of('createAgenda'))}/s, `)
process.stdout.write(`with a job ${Math.round(of('createWithJob'))}/s, `)
process.stdout.write(`ratio ${(of('createAgenda') / of('createWithJob')).toFixed(1)}\n`)
