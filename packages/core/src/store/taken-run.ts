/** What a grant said when its run began. */
export interface GrantTerms {
  readonly id: string
  /** Which transaction wrote what was read: another one, if it was changed since. */
  readonly version: string
  readonly subject: string
  readonly billingAccountId: string | null
  readonly scopes: readonly string[]
  /** The one schedule that may act by it; null: any of its project. */
  readonly scheduleId: string | null
}

/** A run under a worker's lease, with the fence under which it was taken (I12): what is needed to settle it. */
export interface HeldRun {
  readonly runId: string
  readonly scheduleId: string
  readonly scheduledFor: number
  readonly workerId: string
  readonly token: number
  readonly attempt: number
  /** Of its own revision: decides in which lane it waits, should it have to. */
  readonly targetKind: string
}

/** The same with what its target needs: from the revision that began it (I5). */
export interface TakenRun extends HeldRun {
  readonly tenantId: string
  readonly projectId: string
  readonly trigger: 'schedule' | 'manual'
  readonly startedAt: number
  readonly target: unknown
  /** JSON text. */
  readonly policy: string
  /** By what right, as the revision that began it says. */
  readonly grant: GrantTerms
  readonly ownerSubject: string
}
