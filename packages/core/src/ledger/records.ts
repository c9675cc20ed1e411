import type {
  AttemptOutcome,
  RunReason,
  RunState,
  RunTrigger,
  RunWait,
  ScheduleChangeKind,
  ScheduleState,
} from '@carillon/api'
import type { CadenceSpec } from '@carillon/cadence'

import type { Json } from '../kernel/json.ts'
import type { SchedulePolicy } from '../policy/schedule-policy.ts'

/** A schedule as its users see it. Instants are epoch milliseconds. */
export interface Schedule {
  readonly id: string
  readonly tenantId: string
  readonly projectId: string
  readonly ownerSubject: string
  readonly name: string
  readonly state: Exclude<ScheduleState, 'deleted'>
  /** Grows with every edit. Pass it with a change to refuse the change if there was an edit in between. */
  readonly revision: number
  readonly cadence: CadenceSpec
  readonly target: { readonly kind: string } & { readonly [field: string]: Json }
  readonly policy: SchedulePolicy
  /** The grant by which its runs act (I8). */
  readonly grantId: string
  /** When the grant ends; null: never. */
  readonly grantExpiresAt: number | null
  readonly isGrantRevoked: boolean
  /** The next slot; null unless active. */
  readonly nextSlotAt: number | null
  /** The next slot plus the delay by which the policy's spread shifts this schedule; null unless active. */
  readonly dueAt: number | null
  /** Slots that a user skipped. */
  readonly excludedSlots: readonly number[]
  readonly runCount: number
  readonly failureCount: number
  readonly consecutiveFailures: number
  readonly createdBy: string
  readonly createdAt: number
  readonly updatedBy: string | null
  readonly updatedAt: number | null
  readonly pausedBy: string | null
  /** Begins with `auto:` if Carillon paused the schedule: after too many failures, or because its spec cannot be read. */
  readonly pausedReason: string | null
  readonly pausedAt: number | null
}

/** One line of the ledger, as its users see it. Instants are epoch milliseconds. */
export interface Run {
  readonly id: string
  readonly scheduleId: string
  readonly scheduledFor: number
  readonly revision: number
  readonly trigger: RunTrigger
  readonly state: RunState
  /** One of core's reasons, or one that a module declares. */
  readonly reason: RunReason | (string & {}) | null
  readonly attemptCount: number
  readonly begunAt: number
  readonly startedAt: number | null
  /** What the run waits for; null if a worker holds it, or if it has ended. */
  readonly waitsFor: RunWait | null
  /** When the backoff before its retry ends; null unless the run waits for a retry. */
  readonly retryAt: number | null
  /** When a detached run times out unless it is completed before, or its deadline is moved; null in every other state. */
  readonly deadlineAt: number | null
  /** When the called side last moved the deadline of a detached run; null if it did not. */
  readonly heartbeatAt: number | null
  /** What the target called the work that it passed on; null if it gave it no name. */
  readonly reference: string | null
  readonly cancelRequestedAt: number | null
  readonly completedAt: number | null
  readonly error: Json
}

/** One try at a run. */
export interface Attempt {
  readonly attempt: number
  readonly workerId: string
  readonly outcome: AttemptOutcome
  readonly startedAt: number
  readonly completedAt: number
  readonly error: Json
  readonly result: Json
  /** Who completed it, if neither its worker nor a rescuer did; else null. */
  readonly completedBy: string | null
}

/** One line of a schedule's history. */
export interface ScheduleChange {
  /** Grows with each line. A page starts after the line of an id. */
  readonly id: number
  readonly change: ScheduleChangeKind
  readonly revision: number
  readonly nextSlotAt: number | null
  /** The slot of the run that was requested or cancelled; null for every other change. */
  readonly scheduledFor: number | null
  readonly actor: string
  readonly reason: string | null
  readonly changedAt: number
}
