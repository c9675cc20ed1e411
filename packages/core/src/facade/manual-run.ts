import type { Cadence } from '@carillon/cadence'

import { CarillonError } from '../errors.ts'
import type { Schedule } from '../schedule.ts'
import { insertRuns } from '../store/begin.ts'
import type { Tx } from '../store/database.ts'
import { newRun } from '../store/new-run.ts'
import { findingSlots } from './schedule-cadence.ts'

const TRIES_MAX = 10_000

/**
 * Writes the line of a run-now. Its slot is the millisecond it was asked for, or the nearest free one before: it needs a key
 * of its own (I5) and must not take the place of a slot of the cadence, which would then be lost (I2). Looking back, never
 * ahead, where slots are still to come.
 */
export async function insertManualRun(
  tx: Tx,
  p: { schedule: Schedule; cadence: Cadence; waitsFor: 'turn' | 'worker'; now: number; databaseNow: Date | null },
): Promise<{ id: string; scheduledFor: number }> {
  const { schedule, cadence } = p
  const waits = { for: p.waitsFor, targetKind: schedule.target.kind }
  for (let slot = p.now; slot > p.now - TRIES_MAX; slot -= 1) {
    if (findingSlots('cadence', () => cadence.next(slot - 1)) === slot) continue
    const run = newRun(schedule, { slot, state: 'pending', waits, trigger: 'manual' }, p.now)
    const written = await insertRuns(tx, { runs: [run], workerId: null, onConflict: 'keep', now: p.databaseNow })
    if (written.has(run.id)) return run
  }
  throw new CarillonError('state_conflict', 'too many runs were asked for within these seconds: try again later')
}
