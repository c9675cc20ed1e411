import type { Caller } from '../caller.ts'
import { CarillonError } from '../errors.ts'
import { placeOf } from '../place.ts'
import type { Schedule } from '../schedule.ts'
import type { Tx } from '../store/database.ts'
import { ensureMonthsOf, MissingMonthError } from '../store/missing-month.ts'
import { readClock } from '../store/now.ts'
import { insertChanges, type ScheduleChangeKind } from '../store/schedule-changes.ts'
import { lockSchedule } from '../store/schedule-records.ts'
import { isUuid } from '../uuid.ts'
import { scheduleNotFound } from './refusals.ts'
import type { SchedulerContext } from './scheduler-context.ts'
import type { ChangeOptions } from './scheduler-options.ts'

/** What was done to a schedule, for its history. */
interface ChangeMade {
  readonly change: ScheduleChangeKind
  readonly reason?: string
  /** Schedules with lines to write once the change is committed: see `closeDueSlots`. */
  readonly backlogs?: readonly string[]
}

/** One transaction around a change of one schedule: lock, compare the revision, change, record. */
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

/** One transaction that holds the row of a schedule. */
export function withLocked<Result>(
  context: SchedulerContext,
  caller: Caller,
  id: string,
  work: (tx: Tx, schedule: Schedule, now: number) => Promise<Result>,
): Promise<Result> {
  if (!isUuid(id)) throw scheduleNotFound(id)
  return transactWithMonths(context, caller, async (tx) => {
    const schedule = await lockSchedule(tx, { ...placeOf(caller), id })
    if (schedule === undefined) throw scheduleNotFound(id)
    // Not before the lock was had: a begin that held it may have begun a slot meanwhile, which is not ahead any more.
    return work(tx, schedule, await readClock(tx, context.clock.databaseNow()))
  })
}

/**
 * Runs the whole change again, once, if the ledger has no month for a line of it: upkeep makes them, but no worker may have started
 * yet. A change writes its lines with one statement, so the error names every month that it lacks.
 */
export async function transactWithMonths<Result>(
  { transact }: SchedulerContext,
  caller: Caller,
  work: (tx: Tx) => Promise<Result>,
): Promise<Result> {
  try {
    return await transact(caller, work)
  } catch (error) {
    if (!(error instanceof MissingMonthError)) throw error
    await transact(caller, (tx) => ensureMonthsOf(tx, error.slots))
    return transact(caller, work)
  }
}

/** @throws CarillonError `revision_conflict` if one is named and the schedule has another by now */
export function requireRevision(schedule: Schedule, revision: number | undefined): void {
  if (revision !== undefined && revision !== schedule.revision) {
    const message = `expected revision ${revision}, found ${schedule.revision}: read the schedule again`
    throw new CarillonError('revision_conflict', message)
  }
}
