import { BacklogPortions, LINES_PER_PORTION } from '../backlog-portions.ts'
import { linesOf, stepsOf } from '../backlog-slots.ts'
import type { Caller } from '../caller.ts'
import type { RunReason } from '../policy/run-state.ts'
import type { Schedule } from '../schedule.ts'
import { insertRuns } from '../store/begin.ts'
import type { Tx } from '../store/database.ts'
import type { NewRun } from '../store/new-run.ts'
import { insertBacklogs, type NewBacklog } from '../store/slot-backlogs.ts'
import type { SchedulerContext } from './scheduler-context.ts'

/** How long a change may compute slots while its schedules are locked. */
const COMPUTING_MS = 50
/** How long a call writes backlogs after its change. Workers write the rest. */
const WRITING_MS = 3000

/**
 * Before schedules are changed, what is due already gets its line: a slot that came due and was not begun yet must not vanish with
 * the change (I6). Slots that were excluded say so. Call with the rows of the schedules locked.
 *
 * The schedules stay locked until the change is committed, so this writes one portion of lines at most. If an outage left more due
 * slots than that, the same transaction stores the rest of them as backlogs.
 * @returns the schedules with a backlog: call `writeBacklogs` with them after the commit
 */
export async function closeDueSlots(
  tx: Tx,
  { book, clock, retentionMs }: Pick<SchedulerContext, 'book' | 'clock' | 'retentionMs'>,
  { schedules, reason, now }: { schedules: readonly Schedule[]; reason: RunReason; now: number },
): Promise<readonly string[]> {
  const runs: NewRun[] = []
  const backlogs: NewBacklog[] = []
  const endsMs = clock.monotonicMs() + COMPUTING_MS
  for (const schedule of schedules) {
    const backlog = backlogOf(schedule, reason, now)
    if (backlog === undefined) continue
    const limit = LINES_PER_PORTION - runs.length
    const options = { source: book, cadence: JSON.stringify(schedule.cadence), ledgerFrom: now - retentionMs, limit }
    let next: number | null = backlog.nextSlotAt
    if (clock.monotonicMs() < endsMs) {
      for (const step of stepsOf(backlog, options)) {
        runs.push(...linesOf(backlog, step.due, now))
        next = step.next
        if (clock.monotonicMs() >= endsMs) break
      }
    }
    if (next !== null) backlogs.push({ ...backlog, nextSlotAt: next })
  }
  const databaseNow = clock.databaseNow()
  if (runs.length > 0) await insertRuns(tx, { runs, workerId: null, onConflict: 'keep', now: databaseNow })
  if (backlogs.length > 0) await insertBacklogs(tx, { backlogs, now: databaseNow })
  return backlogs.map(({ scheduleId }) => scheduleId)
}

/**
 * Writes the backlogs of a committed change, in portions and for a few seconds at most. Workers write what is left. Never throws:
 * the change was made, and the caller must not be told otherwise.
 */
export async function writeBacklogs(
  context: SchedulerContext,
  caller: Caller,
  scheduleIds: readonly string[],
): Promise<void> {
  if (scheduleIds.length === 0) return
  const { transact, clock, events, book, retentionMs } = context
  const access = <Result>(work: (tx: Tx) => Promise<Result>): Promise<Result> => transact(caller, work)
  const portions = new BacklogPortions(
    { clock, source: book, retentionMs, read: access, transact: access },
    scheduleIds,
  )
  const endsMs = clock.monotonicMs() + WRITING_MS
  try {
    await portions.write(() => clock.monotonicMs() >= endsMs)
  } catch (error) {
    events.emit('service.failed', { service: 'backlog writer', error })
  }
}

/** All slots of a schedule that are due; undefined if none is. */
function backlogOf(schedule: Schedule, reason: RunReason, now: number): NewBacklog | undefined {
  const { id, tenantId, projectId, revision, nextSlotAt, dueAt } = schedule
  if (nextSlotAt === null || dueAt === null || dueAt > now) return undefined
  const until = now - (dueAt - nextSlotAt)
  const excludedSlots = schedule.excludedSlots.filter((slot) => slot >= nextSlotAt && slot <= until)
  return { scheduleId: id, tenantId, projectId, revision, until, nextSlotAt, reason, excludedSlots }
}
