import { within } from '../clock.ts'
import { dueAfterLoading, requireWaiting } from '../lead-time.ts'
import { insertSchedules, settleDown } from '../load-schedules.ts'
import type { Drain } from '../measure.ts'
import { drainOf, Tally } from '../peers/tally.ts'
import { openPool } from './bench-pool.ts'
import { startCarillon } from './carillon-worker.ts'
import { NOOP, noopTarget } from './noop-target.ts'
import { requireWholeLedger } from './written-rows.ts'

export const DRAIN_TENANT = 'drain'

interface Asked {
  readonly count: number
  readonly patienceMs: number
  /** How many other schedules are in the database. @default 0 */
  readonly held?: number
}

/** Measures `count` schedules that are due at one instant, with a worker in this process. */
export async function drainByCarillon(url: string, work: Asked): Promise<Drain> {
  const { count, held = 0 } = work
  await using pool = openPool(url)
  const dueAt = dueAfterLoading(count, held)
  await insertSchedules(pool, { count, kind: NOOP, firstSlotAt: dueAt, spacingMs: 0, tenant: DRAIN_TENANT })
  await settleDown(pool)
  const [calls, ends] = [new Tally(count), new Tally(count)]
  await using worker = await startCarillon(
    url,
    noopTarget(() => {
      calls.note()
    }),
  )
  worker.events.on('attempt.settled', () => {
    ends.note()
  })
  requireWaiting(dueAt)
  await within(Promise.race([ends.complete, worker.failed]), dueAt + work.patienceMs)
  await requireWholeLedger(pool, count, DRAIN_TENANT)
  return drainOf({ count, dueAt, firstAt: calls.firstAt, lastAt: ends.lastAt })
}
