import type { Caller } from '../caller.ts'
import { systemClock, type Clock } from '../clock.ts'
import { Events } from '../events.ts'
import { SlotBook } from '../keeper/slot-book.ts'
import { placeOf } from '../place.ts'
import { checkedRetentionMs } from '../retention-days.ts'
import type { Tx } from '../store/database.ts'
import { transactWithin } from '../store/walled-transaction.ts'
import type { Target } from '../target.ts'
import { KnownInputs } from './known-inputs.ts'
import { countingPlaces } from './quota.ts'
import type { SchedulerDeps, SchedulerOptions } from './scheduler-options.ts'

const MINIMUM_SECONDS_DEFAULT = 60
const PER_PROJECT_DEFAULT = 500
const PER_USER_DEFAULT = 50

/** One transaction behind the wall of the caller's project; of nobody's without a caller (I9). */
type Transact = <Result>(
  caller: Caller | null,
  work: (tx: Tx, read: readonly unknown[]) => Promise<Result>,
  /** What is read in the same message as the transaction begins. */
  first?: string,
) => Promise<Result>

/** What every part of the scheduler works with. */
export interface SchedulerContext {
  readonly transact: Transact
  readonly clock: Clock
  readonly events: Events
  readonly targets: ReadonlyMap<string, Target>
  readonly book: SlotBook
  readonly known: KnownInputs
  /** Then whether a secret is there shows only when it is needed. */
  readonly areSecretsElsewhere: boolean
  /** Unless the tenant has one of its own. */
  readonly minimumSeconds: number
  readonly retentionMs: number
}

export function createContext(deps: SchedulerDeps, options: SchedulerOptions): SchedulerContext {
  const { db, clock = systemClock } = deps
  // Null says that there is none: a default is for what was left out.
  const { maxSchedulesPerProject: perProject = PER_PROJECT_DEFAULT, maxSchedulesPerUser: perUser = PER_USER_DEFAULT } =
    options
  return {
    transact: (caller, work, first) => {
      const place = caller === null ? null : placeOf(caller)
      return countingPlaces({ perProject, perUser }, (settings) =>
        transactWithin(db, clock, place, work, settings, first),
      )
    },
    clock,
    areSecretsElsewhere: options.areSecretsElsewhere ?? false,
    events: deps.events ?? new Events(),
    targets: deps.targets,
    book: new SlotBook(),
    known: new KnownInputs(),
    minimumSeconds: options.minimumSeconds ?? MINIMUM_SECONDS_DEFAULT,
    retentionMs: checkedRetentionMs(options.retentionDays),
  }
}

/** What every event about a change of a schedule tells. */
export function changeEvent(
  caller: Caller,
  scheduleId: string,
): { scheduleId: string; actor: string } & Pick<Caller, 'tenantId' | 'projectId'> {
  const { tenantId, projectId, subject } = caller
  return { tenantId, projectId, scheduleId, actor: subject }
}
