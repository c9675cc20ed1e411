import { within } from '../clock.ts'
import { dueAfterLoading, requireWaiting } from '../lead-time.ts'
import { loadSchedules } from '../load-schedules.ts'
import type { Drain } from '../measure.ts'
import type { Part, Work } from '../work.ts'
import { openPool } from './bench-pool.ts'
import { Child } from './child.ts'
import { drainReadings } from './drain.ts'
import { NOOP } from './noop-target.ts'
import type { WorkerMessage } from './worker-process.ts'
import { requireWholeLedger } from './written-rows.ts'

const TENANT = 'workers'
const PATIENCE_MS = 60_000
/** The time for two processes to start. */
const STARTS_MS = 4000
const NOTE = 'each worker is a process of its own; on a machine with two cores they share them with Postgres'

export const workersWork: Work<'workers'> = {
  name: 'workers',
  title: 'Two workers against one',
  async measure(bench, { count }) {
    const part = (subject: string, workers: number): Part => ({
      subject,
      size: count,
      measure: async ({ postgresUrl }) => drainReadings(await drain(postgresUrl, { count, workers }), NOTE),
    })
    await bench.interleave([part('one worker', 1), part('two workers', 2)], { isMigrated: true })
  },
}

async function drain(url: string, { count, workers }: { count: number; workers: number }): Promise<Drain> {
  await using pool = openPool(url)
  const dueAt = dueAfterLoading(count) + STARTS_MS
  await loadSchedules(pool, { count, kind: NOOP, firstSlotAt: dueAt, spacingMs: 0, tenant: TENANT })
  await using children = new AsyncDisposableStack()
  const start = async (): Promise<Child<WorkerMessage>> =>
    children.use(await Child.start<WorkerMessage>('worker-process.ts', { url }))
  const started = await Promise.all(Array.from({ length: workers }, start))
  requireWaiting(dueAt)
  const { firstAt, lastAt } = await within(allSettled(started, count), dueAt + PATIENCE_MS)
  await requireWholeLedger(pool, count, TENANT)
  return { count, seconds: (lastAt - dueAt) / 1000, firstMs: firstAt - dueAt }
}

/** Resolves when the workers together have settled this many runs. */
export function allSettled(
  workers: readonly Child<WorkerMessage>[],
  count: number,
): Promise<{ firstAt: number; lastAt: number }> {
  const latest = new Map<Child<WorkerMessage>, WorkerMessage>()
  const { promise, resolve, reject } = Promise.withResolvers<{ firstAt: number; lastAt: number }>()
  for (const worker of workers) {
    worker.failed.catch(reject)
    worker.onMessage((message) => {
      if (message.failure !== null) reject(new Error(message.failure))
      latest.set(worker, message)
      const all = [...latest.values()]
      if (all.reduce((sum, { settled }) => sum + settled, 0) < count) return
      const firstAt = Math.min(...all.map((one) => one.firstAt ?? Infinity))
      resolve({ firstAt, lastAt: Math.max(...all.map(({ at }) => at)) })
    })
  }
  return promise
}
