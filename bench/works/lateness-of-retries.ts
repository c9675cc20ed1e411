import { nowMs, within } from '../clock.ts'
import { dueAfterLoading, requireWaiting } from '../lead-time.ts'
import { insertSchedules } from '../load-schedules.ts'
import type { Lateness } from '../measure.ts'
import { Tally } from '../peers/tally.ts'
import { RETRY_POLICY } from '../policy.ts'
import { openPool } from './bench-pool.ts'
import { startCarillon } from './carillon-worker.ts'
import { failingOnceTarget, NOOP } from './noop-target.ts'
import { requireWholeLedger } from './written-rows.ts'

const TENANT = 'retries'
const PATIENCE_MS = 30_000

/** Measures how late the second attempts are, for slots one after another whose first attempt fails. The worker runs in this process. */
export async function latenessOfRetries(url: string, work: { slots: number; spacingMs: number }): Promise<Lateness> {
  const { slots, spacingMs } = work
  await using pool = openPool(url)
  const firstSlotAt = dueAfterLoading(slots)
  const load = { count: slots, kind: NOOP, firstSlotAt, spacingMs, tenant: TENANT, policy: RETRY_POLICY }
  await insertSchedules(pool, load)
  const dueAts = new Map<string, number>()
  const late: number[] = []
  const ends = new Tally(slots)
  const target = failingOnceTarget(({ runId }) => {
    // A retry that the worker never announced makes the maximum infinite, and an infinite value fails the round.
    late.push(nowMs() - (dueAts.get(runId) ?? -Infinity))
  })
  await using worker = await startCarillon(url, target, { isRetryExpected: true })
  worker.events.on('attempt.settled', ({ runId, retryAt }) => {
    if (retryAt === null) ends.note()
    else dueAts.set(runId, retryAt)
  })
  requireWaiting(firstSlotAt)
  await within(Promise.race([ends.complete, worker.failed]), firstSlotAt + slots * spacingMs + PATIENCE_MS)
  await requireWholeLedger(pool, slots, TENANT)
  return late
}
