import type { DueSlots, SlotBook } from '../keeper/slot-book.ts'
import type { RunReason } from '../policy/run-state.ts'
import type { Schedule } from '../schedule.ts'
import { insertRuns } from '../store/begin.ts'
import type { Tx } from '../store/database.ts'
import { newRun } from '../store/new-run.ts'
import type { SchedulerContext } from './scheduler-context.ts'

const PORTION = 1000

/**
 * Before a schedule is changed, what is due already gets its line: a slot that came due and was not begun yet must not
 * vanish with the change (I6). Slots that were excluded say so. Call with the schedule's row locked.
 */
export async function closeDueSlots(
  tx: Tx,
  { book, clock, retentionMs }: Pick<SchedulerContext, 'book' | 'clock' | 'retentionMs'>,
  { schedule, reason, now }: { schedule: Schedule; reason: RunReason; now: number },
): Promise<void> {
  if (schedule.nextSlotAt === null || schedule.dueAt === null || schedule.dueAt > now) return
  const until = now - (schedule.dueAt - schedule.nextSlotAt)
  const excluded = new Set(schedule.excludedSlots)
  for (let next: number | null = schedule.nextSlotAt; next !== null && next <= until;) {
    const slots = dueFrom(book, schedule, { first: next, until, ledgerFrom: now - retentionMs })
    const reasonOf = (slot: number): RunReason => (excluded.has(slot) ? 'excluded' : reason)
    const runs = slots.due.map((slot) => newRun(schedule, { slot, state: 'skipped', reason: reasonOf(slot) }, now))
    await insertRuns(tx, { runs, workerId: null, onConflict: 'keep', now: clock.databaseNow() })
    next = slots.next
  }
}

/**
 * As begin sees them: what the ledger no longer remembers is passed over. Of a cadence that can no longer be read the one
 * slot that is known gets its line, for such a schedule must not be the one that nobody can delete.
 */
function dueFrom(
  book: SlotBook,
  schedule: Schedule,
  { first, until, ledgerFrom }: { first: number; until: number; ledgerFrom: number },
): DueSlots {
  const cadence = JSON.stringify(schedule.cadence)
  try {
    const from = first < ledgerFrom ? book.firstFrom(cadence, ledgerFrom) : first
    if (from === null || from > until) return { due: [], next: null }
    return book.dueSlots(cadence, { first: from, until, limit: PORTION })
  } catch {
    return { due: [first], next: null }
  }
}
