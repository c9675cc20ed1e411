import type { Caller } from '../caller.ts'
import { CarillonError } from '../errors.ts'
import { placeOf } from '../place.ts'
import type { Schedule } from '../schedule.ts'
import type { Tx } from '../store/database.ts'
import { ensureMonthsOf, MissingMonthError } from '../store/missing-month.ts'
import { readClock, readNow } from '../store/now.ts'
import { ensurePartitions } from '../store/partitions.ts'
import { insertChanges, type ScheduleChangeKind } from '../store/schedule-changes.ts'
import { lockSchedule } from '../store/schedule-records.ts'
import { isUuid } from '../uuid.ts'
import { scheduleNotFound } from './refusals.ts'
import type { SchedulerContext } from './scheduler-context.ts'
import type { ChangeOptions } from './scheduler-options.ts'

/** What was done to a schedule, for its history. */
type ChangeMade = ScheduleChangeKind | { readonly change: ScheduleChangeKind; readonly reason: string }

/** Of a project that is deleted, each schedule may lack earlier months than the one before. */
const MONTH_TRIES_MAX = 5

/** One transaction around a change of one schedule: lock, compare the revision, change, record. */
export async function changeSchedule(
  context: SchedulerContext,
  caller: Caller,
  id: string,
  { revision }: ChangeOptions,
  change: (tx: Tx, schedule: Schedule, now: number) => Promise<ChangeMade>,
): Promise<void> {
  await withLocked(context, caller, id, async (tx, schedule, now) => {
    requireRevision(schedule, revision)
    const made = await change(tx, schedule, now)
    const record = typeof made === 'string' ? { change: made, reason: null } : made
    await insertChanges(tx, {
      ...record,
      scheduleIds: [id],
      actor: caller.subject,
      now: context.clock.databaseNow(),
    })
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
 * The whole change again, should the ledger have no month for a line of it: upkeep makes them, but no worker may have
 * started yet. From the first that is missing to this one, for what is due is written in portions; of a slot that the
 * ledger does not remember, its own.
 */
export async function transactWithMonths<Result>(
  { transact, clock, retentionMs }: SchedulerContext,
  caller: Caller,
  work: (tx: Tx) => Promise<Result>,
): Promise<Result> {
  for (let tries = 1; ; tries += 1) {
    try {
      return await transact(caller, work)
    } catch (error) {
      if (!(error instanceof MissingMonthError) || tries >= MONTH_TRIES_MAX) throw error
      await transact(caller, async (tx) => {
        await ensureMonthsOf(tx, error.slots)
        const now = await readNow(tx, clock.databaseNow())
        const from = Math.min(...error.slots.filter((slot) => slot >= now - retentionMs), now)
        await ensurePartitions(tx, { from: new Date(from), to: new Date(now) })
      })
    }
  }
}

/** @throws CarillonError `revision_conflict` if one is named and the schedule has another by now */
export function requireRevision(schedule: Schedule, revision: number | undefined): void {
  if (revision !== undefined && revision !== schedule.revision) {
    const message = `expected revision ${revision}, found ${schedule.revision}: read the schedule again`
    throw new CarillonError('revision_conflict', message)
  }
}
