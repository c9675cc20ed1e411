import { isUuid, type RunReason } from '@carillon/api'

import type { Tx } from '../db/database.ts'
import type { NewLine } from '../db/new-lines.ts'
import { readCurrentTime } from '../db/now.ts'
import { insertChanges, type OwnChangeKind } from '../db/schedule-changes.ts'
import { CarillonError } from '../kernel/errors.ts'
import { type Caller, scopeOf } from '../kernel/scope.ts'
import { linesOf, stepsOf } from '../ledger/backlog-slots.ts'
import { backlogOf, BacklogPortions, insertBacklogs, LINES_PER_PORTION, type NewBacklog } from '../ledger/backlogs.ts'
import { insertLines, withMonths } from '../ledger/lines.ts'
import type { Schedule } from '../ledger/records.ts'
import type { SchedulerContext } from './context.ts'
import type { ChangeOptions } from './options.ts'
import { scheduleNotFound } from './reads.ts'
import { lockSchedule } from './store/schedules.ts'

/** How long a change may compute slots while its schedules are locked. It stores the slots that are left as backlogs. */
const COMPUTING_MS = 50
/** How long a call writes backlogs after its change. Workers write the rest. */
const WRITING_MS = 3000

/** What a change did to a schedule, for its history. */
interface ChangeMade {
  readonly change: OwnChangeKind
  readonly reason?: string
  /** The ids of schedules whose remaining lines are written after the commit: see `closeDueSlots`. */
  readonly backlogs?: readonly string[]
}

/** One transaction around a change of one schedule: lock it, compare the revision, change it, record the change. */
export async function changeSchedule(
  context: SchedulerContext,
  caller: Caller,
  id: string,
  { revision }: ChangeOptions,
  change: (tx: Tx, schedule: Schedule, now: number) => Promise<ChangeMade>,
): Promise<{ readonly backlogs: readonly string[] }> {
  return withLocked(context, caller, id, async (tx, schedule, now) => {
    requireRevision(schedule, revision)
    const made = await change(tx, schedule, now)
    await insertChanges(tx, {
      change: made.change,
      reason: made.reason ?? null,
      scheduleIds: [id],
      actor: caller.subject,
      now: new Date(now),
    })
    return { backlogs: made.backlogs ?? [] }
  })
}

/** One transaction that holds the lock of a schedule. */
export function withLocked<Result>(
  context: SchedulerContext,
  caller: Caller,
  id: string,
  work: (tx: Tx, schedule: Schedule, now: number) => Promise<Result>,
): Promise<Result> {
  if (!isUuid(id)) throw scheduleNotFound(id)
  return transactWithMonths(context, caller, async (tx) => {
    const schedule = await lockSchedule(tx, { ...scopeOf(caller), id })
    if (schedule === undefined) throw scheduleNotFound(id)
    // Read the clock after the lock: while this waited for the lock, a begin may have begun a slot that was in the future before.
    return work(tx, schedule, await readCurrentTime(tx, context.clock.databaseNow()))
  })
}

/** Runs one transaction for a change that may write lines; twice if the ledger lacks the month of a line. */
export async function transactWithMonths<Result>(
  { transact }: SchedulerContext,
  caller: Caller,
  work: (tx: Tx) => Promise<Result>,
): Promise<Result> {
  return withMonths(
    () => transact(caller, work),
    (create) => transact(caller, create),
  )
}

/** @throws CarillonError `revision_conflict` if the caller names a revision and the schedule has another one */
export function requireRevision(schedule: Schedule, revision: number | undefined): void {
  if (revision !== undefined && revision !== schedule.revision) {
    const message = `expected revision ${revision}, got ${schedule.revision}: read the schedule again`
    throw new CarillonError('revision_conflict', message)
  }
}

/**
 * Writes lines for the slots that came due before a change: a slot that is due and has not begun must not vanish with the change
 * (I6). Excluded slots get the reason `excluded`. Call with the schedules locked.
 *
 * The schedules stay locked until the commit, so this writes at most one portion of lines. If an outage left more due slots, the
 * same transaction stores the rest as backlogs.
 * @returns the ids of the schedules with a backlog: call `writeBacklogs` with them after the commit
 */
export async function closeDueSlots(
  tx: Tx,
  { cadences, clock, retentionMs }: Pick<SchedulerContext, 'cadences' | 'clock' | 'retentionMs'>,
  { schedules, reason, now }: { schedules: readonly Schedule[]; reason: RunReason; now: number },
): Promise<readonly string[]> {
  const lines: NewLine[] = []
  const backlogs: NewBacklog[] = []
  const endsMs = clock.monotonicMs() + COMPUTING_MS
  for (const schedule of schedules) {
    const backlog = backlogOf(schedule, reason, now)
    if (backlog === undefined) continue
    const limit = LINES_PER_PORTION - lines.length
    const options = {
      cadences,
      cadence: JSON.stringify(schedule.cadence),
      ledgerFrom: now - retentionMs,
      limit,
    }
    let next: number | null = backlog.nextSlotAt
    if (clock.monotonicMs() < endsMs) {
      for (const step of stepsOf(backlog, options)) {
        lines.push(...linesOf(backlog, step.due, now))
        next = step.next
        if (clock.monotonicMs() >= endsMs) break
      }
    }
    if (next !== null) backlogs.push({ ...backlog, nextSlotAt: next })
  }
  const databaseNow = clock.databaseNow()
  if (lines.length > 0) await insertLines(tx, { lines, workerId: null, onConflict: 'keep', now: databaseNow })
  if (backlogs.length > 0) await insertBacklogs(tx, { backlogs, now: databaseNow })
  return backlogs.map(({ scheduleId }) => scheduleId)
}

/**
 * Writes the backlogs of a committed change, in portions and for a few seconds at most. Workers write the rest. Never throws: the
 * change is committed, so the call must not fail.
 */
export async function writeBacklogs(
  context: SchedulerContext,
  caller: Caller,
  scheduleIds: readonly string[],
): Promise<void> {
  if (scheduleIds.length === 0) return
  const { transact, clock, events, cadences, retentionMs } = context
  const access = <Result>(work: (tx: Tx) => Promise<Result>): Promise<Result> => transact(caller, work)
  const portions = new BacklogPortions({ clock, cadences, retentionMs, read: access, transact: access }, scheduleIds)
  const endsMs = clock.monotonicMs() + WRITING_MS
  try {
    await portions.write(() => clock.monotonicMs() >= endsMs)
  } catch (error) {
    events.emit('service.failed', { service: 'backlog writer', error })
  }
}
