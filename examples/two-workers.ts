/**
 * Two workers on one Postgres. Neither leads: each keeps the agenda by itself, and a slot is begun by whoever is first. One
 * of them stops half-way; the other goes on, and no slot is lost or doubled.
 *
 * Run: `node examples/two-workers.ts`
 */
import { createDb, Scheduler, Worker, type Target } from '@carillon/core'
import { z } from 'zod'

import { startTemporaryPostgres } from './temporary-postgres.ts'

const SCHEDULES = 100

await using database = await startTemporaryPostgres()
const calls: string[] = []

function countingTarget(): Target {
  return {
    kind: 'count',
    schema: z.strictObject({ kind: z.literal('count') }),
    retry: { maxAttempts: 1, baseSeconds: 1, capSeconds: 1 },
    requiredScope: () => 'count:add:one',
    timeoutMs: () => 10_000,
    dispatch: ({ idempotencyKey }) => {
      calls.push(idempotencyKey)
      return Promise.resolve({ kind: 'succeeded', result: null })
    },
  }
}

const workers = ['one', 'two'].map(
  (name) => new Worker({ databaseUrl: database.url, targets: [countingTarget()], name, concurrency: 5 }),
)
const [one, two] = workers
const settledBy = new Map<Worker | undefined, number>()
const allSettled = new Promise<void>((resolve) => {
  let settled = 0
  for (const worker of workers) {
    worker.events.on('attempt.settled', () => {
      settled += 1
      settledBy.set(worker, (settledBy.get(worker) ?? 0) + 1)
      // The first batch is done: one of the two leaves.
      if (settled === SCHEDULES / 2) void one?.stop()
      if (settled === SCHEDULES) resolve()
    })
  }
})

const scheduler = new Scheduler(
  { db: createDb(database.pool), targets: new Map([['count', countingTarget()]]) },
  // More than the 50 that one user may have unless told otherwise.
  { maxSchedulesPerUser: SCHEDULES },
)
const caller = { tenantId: 'default', projectId: 'default', subject: 'user:you' }
const at = Date.now() + 4000
for (let n = 0; n < SCHEDULES; n += 1) {
  // Half of them come due a moment later.
  const due = new Date(at + (n < SCHEDULES / 2 ? 0 : 1500)).toISOString()
  await scheduler.create(caller, { name: `Count ${n}`, cadence: { kind: 'once', at: due }, target: { kind: 'count' } })
}
for (const worker of workers) await worker.start()
await allSettled
await Promise.all(workers.map((worker) => worker.stop()))

process.stdout.write(`calls: ${calls.length}, distinct: ${new Set(calls).size}\n`)
process.stdout.write(`worker two settled after worker one had left: ${(settledBy.get(two) ?? 0) >= SCHEDULES / 2}\n`)
