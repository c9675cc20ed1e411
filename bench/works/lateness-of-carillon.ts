import { nowMs, within } from '../clock.ts'
import { dueAfterLoading, requireWaiting } from '../lead-time.ts'
import { insertSchedules } from '../load-schedules.ts'
import type { Lateness } from '../measure.ts'
import { Tally } from '../peers/tally.ts'
import { openPool } from './bench-pool.ts'
import { startCarillon } from './carillon-worker.ts'
import { NOOP, noopTarget } from './noop-target.ts'
import { requireWholeLedger } from './written-rows.ts'

export const SPARSE_TENANT = 'sparse'
const PATIENCE_MS = 30_000

/** Measures slots one after another, with a worker in this process. */
export async function latenessOfCarillon(url: string, work: { slots: number; spacingMs: number }): Promise<Lateness> {
  const { slots, spacingMs } = work
  await using pool = openPool(url)
  const firstSlotAt = dueAfterLoading(slots)
  await insertSchedules(pool, { count: slots, kind: NOOP, firstSlotAt, spacingMs, tenant: SPARSE_TENANT })
  const late: number[] = []
  const ends = new Tally(slots)
  await using worker = await startCarillon(
    url,
    noopTarget(({ scheduledFor }) => late.push(nowMs() - scheduledFor)),
  )
  worker.events.on('attempt.settled', () => {
    ends.note()
  })
  requireWaiting(firstSlotAt)
  await within(Promise.race([ends.complete, worker.failed]), firstSlotAt + slots * spacingMs + PATIENCE_MS)
  await requireWholeLedger(pool, slots, SPARSE_TENANT)
  return late
}
