import type { Caller } from '../caller.ts'
import { systemClock, type Clock } from '../clock.ts'
import type { Jobs } from '../engine.ts'
import { slotJobs } from '../engine/slot-jobs.ts'
import { Events } from '../events.ts'
import { SlotBook } from '../keeper/slot-book.ts'
import { checkedRetentionMs } from '../retention-days.ts'
import type { Db } from '../store/database.ts'
import type { Target } from '../target.ts'
import type { SchedulerDeps, SchedulerOptions } from './scheduler-options.ts'

const MINIMUM_SECONDS_DEFAULT = 60

/** What every part of the scheduler works with. */
export interface SchedulerContext {
  readonly db: Db
  readonly clock: Clock
  readonly jobs: Jobs
  readonly events: Events
  readonly targets: ReadonlyMap<string, Target>
  readonly book: SlotBook
  readonly minimumSeconds: number
  readonly retentionMs: number
}

export function createContext(deps: SchedulerDeps, options: SchedulerOptions): SchedulerContext {
  return {
    db: deps.db,
    clock: deps.clock ?? systemClock,
    jobs: deps.jobs ?? slotJobs,
    events: deps.events ?? new Events(),
    targets: deps.targets,
    book: new SlotBook(),
    minimumSeconds: options.minimumSeconds ?? MINIMUM_SECONDS_DEFAULT,
    retentionMs: checkedRetentionMs(options.retentionDays),
  }
}

/** Where a caller's statements look (I9). */
export function within({ tenantId, projectId }: Caller): { tenantId: string; projectId: string } {
  return { tenantId, projectId }
}

/** What every event about a change of a schedule tells. */
export function changeEvent(
  caller: Caller,
  scheduleId: string,
): { scheduleId: string; actor: string } & ReturnType<typeof within> {
  return { ...within(caller), scheduleId, actor: caller.subject }
}
