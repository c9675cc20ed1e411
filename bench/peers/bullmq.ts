import type { RepeatOptions } from 'bullmq'

import { nowMs, within } from '../clock.ts'
import { leadOf, requireAhead } from '../lead-time.ts'
import type { Creation, Drain, Ground, Lateness, Peer } from '../measure.ts'
import { dailyCron } from './due.ts'
import { inTurn } from './in-turn.ts'
import { drainOf, LateCalls, Tally } from './tally.ts'

interface OpenQueue {
  upsertJobScheduler(id: string, repeat: RepeatOptions, template: { name: string; data: unknown }): Promise<unknown>
  close(): Promise<void>
}

interface OpenWorker {
  on(event: 'completed' | 'error', listener: () => void): unknown
  waitUntilReady(): Promise<unknown>
  /** @param force closes without waiting for the running jobs */
  close(force?: boolean): Promise<void>
}

export interface Slot {
  readonly nominal: number
}

/** The store of BullMQ's jobs. Each has the same queue, worker and schedulers. */
export interface Backend {
  prepare(ground: Ground): Promise<void>
  openQueue(ground: Ground, name: string): OpenQueue
  openWorker(ground: Ground, name: string, process: (slot: Slot) => void): OpenWorker
}

type Works = Required<Pick<Peer, 'drain' | 'lateness' | 'create'>>

const EVERY_MS = 1000 * 86_400_000
const LOADERS = 50
const PROBE = 500
const LEAD_MS = 3000
const CLOSE_PATIENCE_MS = 30_000

export function worksOn(backend: Backend): Works {
  return {
    drain: (ground, work) => drain(backend, ground, work),
    lateness: (ground, work) => lateness(backend, ground, work),
    create: (ground, work) => create(backend, ground, work),
  }
}

async function drain(backend: Backend, ground: Ground, work: { count: number; patienceMs: number }): Promise<Drain> {
  await backend.prepare(ground)
  const dueAt = Math.ceil(nowMs() + (await leadFor(backend, ground, work.count)))
  const queue = backend.openQueue(ground, 'drain')
  const [calls, ends] = [new Tally(work.count), new Tally(work.count)]
  let worker: OpenWorker | undefined
  try {
    await inTurn({ count: work.count, clients: LOADERS }, (n) => upsert(queue, n, dueAt))
    worker = backend.openWorker(ground, 'drain', () => {
      calls.note()
    })
    worker.on('completed', () => {
      ends.note()
    })
    worker.on('error', ignore)
    await worker.waitUntilReady()
    requireAhead(dueAt)
    await within(ends.complete, dueAt + work.patienceMs)
    return drainOf({ count: work.count, dueAt, firstAt: calls.firstAt, lastAt: ends.lastAt })
  } finally {
    if (worker !== undefined) await close(worker)
    await queue.close()
  }
}

/** Closing waits for statements in progress, and an abandoned drain may have very many. So it has a time limit. */
async function close(worker: OpenWorker): Promise<void> {
  await within(worker.close(true), nowMs() + CLOSE_PATIENCE_MS)
}

async function lateness(
  backend: Backend,
  ground: Ground,
  work: { slots: number; spacingMs: number },
): Promise<Lateness> {
  await backend.prepare(ground)
  const queue = backend.openQueue(ground, 'lateness')
  const calls = new LateCalls(work.slots)
  const worker = backend.openWorker(ground, 'lateness', ({ nominal }) => {
    calls.note(nominal)
  })
  worker.on('error', ignore)
  try {
    await worker.waitUntilReady()
    const firstAt = Math.ceil(nowMs()) + leadOf(LEAD_MS)
    await inTurn({ count: work.slots, clients: LOADERS }, (n) => upsert(queue, n, firstAt + n * work.spacingMs))
    requireAhead(firstAt)
    return await calls.all(firstAt + work.slots * work.spacingMs)
  } finally {
    await close(worker)
    await queue.close()
  }
}

async function create(backend: Backend, ground: Ground, work: { count: number; clients: number }): Promise<Creation> {
  await backend.prepare(ground)
  const queue = backend.openQueue(ground, 'create')
  try {
    return await inTurn(work, (n) =>
      queue.upsertJobScheduler(`schedule-${n}`, { pattern: dailyCron(n), tz: 'UTC' }, { name: 'noop', data: {} }),
    )
  } finally {
    await queue.close()
  }
}

/** An error appears in the result as slots that never end. */
function ignore(): void {}

/** Creates a scheduler that is due at an instant, and not again for years. */
function upsert(queue: OpenQueue, n: number, startDate: number): Promise<unknown> {
  return queue.upsertJobScheduler(
    `schedule-${n}`,
    { every: EVERY_MS, startDate },
    { name: 'noop', data: { nominal: startDate } },
  )
}

/** BullMQ has no bulk load and each scheduler contains its instant, so the loading time is measured first. */
async function leadFor(backend: Backend, ground: Ground, count: number): Promise<number> {
  const queue = backend.openQueue(ground, 'probe')
  try {
    const dueAt = nowMs() + EVERY_MS
    const { seconds } = await inTurn({ count: PROBE, clients: LOADERS }, (n) => upsert(queue, n, dueAt))
    return leadOf(LEAD_MS) + (seconds * 1000 * 2 * count) / PROBE
  } finally {
    await queue.close()
  }
}
