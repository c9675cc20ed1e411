/**
 * Two workers on one Postgres, without a leader: the first one to claim a slot begins it. One of them stops half-way. The other one
 * continues, and no slot is lost or doubled.
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
    policy: { retry: { maxAttempts: 1, baseSeconds: 1, capSeconds: 1 } },
    requiredScope: () => 'count:add:one',
    timeoutMs: () => 10_000,
    dispatch: ({ idempotencyKey }) => {
      calls.push(idempotencyKey)
      return Promise.resolve({ kind: 'succeeded', result: null })
    },
  }
}

const [firstHalf, secondHalf] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
let settled = 0

function createWorker(name: string): Worker {
  const worker = new Worker({ databaseUrl: database.url, targets: [countingTarget()], name, concurrency: 5 })
  worker.events.on('attempt.settled', () => {
    settled += 1
    if (settled === SCHEDULES / 2) firstHalf.resolve()
    if (settled === SCHEDULES) secondHalf.resolve()
  })
  return worker
}

const scheduler = new Scheduler(
  { db: createDb(database.pool), targets: new Map([['count', countingTarget()]]) },
  // More than the default limit of 50 per user.
  { maxSchedulesPerUser: SCHEDULES },
)
const caller = { tenantId: 'default', projectId: 'default', subject: 'user:you' }

/** Half of the schedules, each due in two seconds. */
async function createHalf(): Promise<void> {
  for (let n = 0; n < SCHEDULES / 2; n += 1) {
    const at = new Date(Date.now() + 2000).toISOString()
    await scheduler.create(caller, { name: `Count ${n}`, cadence: { kind: 'once', at }, target: { kind: 'count' } })
  }
}

const [one, two] = [createWorker('one'), createWorker('two')]
await Promise.all([one.start(), two.start()])
await createHalf()
await firstHalf.promise
await one.stop()
const settledByBoth = settled
await createHalf()
await secondHalf.promise
await two.stop()

process.stdout.write(`calls: ${calls.length}, distinct: ${new Set(calls).size}\n`)
process.stdout.write(`settled by worker two after worker one had left: ${settled - settledByBoth}\n`)
