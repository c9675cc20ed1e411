import type { RunTrigger } from '@carillon/api'

/** The grant of a run as it was when the run was begun or taken. */
export interface GrantTerms {
  readonly id: string
  /** The transaction that last wrote the grant (`xmin`). Another value later means that the grant was changed. */
  readonly version: string
  readonly subject: string
  readonly billingAccountId: string | null
  readonly scopes: readonly string[]
  /** The only schedule that may use the grant; null: every schedule of its project. */
  readonly scheduleId: string | null
}

/**
 * A run that a worker holds under its lease, with everything its target needs. Target, policy and grant are those of the revision that
 * began the run (I5).
 */
export interface HeldRun {
  readonly runId: string
  readonly scheduleId: string
  readonly scheduledFor: number
  readonly workerId: string
  /** The fencing token (I12): grows each time the run is taken. */
  readonly token: number
  readonly attempt: number
  /** Decides the lane that the run waits in if it has to wait again. */
  readonly targetKind: string
  readonly tenantId: string
  readonly projectId: string
  /** The revision of the schedule that began the run. */
  readonly revision: number
  readonly trigger: RunTrigger
  readonly startedAt: number
  readonly target: unknown
  /** JSON text. */
  readonly policy: string
  readonly grant: GrantTerms
  readonly ownerSubject: string
}

/** The part of a held run that is enough to settle it: its identity, its fence, and the spec that hooks are called with. */
export type RunFence = Pick<
  HeldRun,
  | 'runId'
  | 'scheduleId'
  | 'scheduledFor'
  | 'tenantId'
  | 'projectId'
  | 'revision'
  | 'trigger'
  | 'workerId'
  | 'token'
  | 'attempt'
  | 'targetKind'
  | 'target'
>
