/**
 * The states of a run, in the words of the ledger (`carillon.run_state`).
 *
 * ```
 *                ┌──────────► skipped                       (never tried; its reason says why)
 *  begin ──► pending ◄─► running ──► succeeded
 *    │           │        │ ▲ ├────► failed
 *    │           │        ▼ │ └────► cancelled
 *    │           │      retrying ──► failed                 (superseded by the next slot)
 *    │           └─────────┴───────► cancelled
 *    ├──► running                                           (nothing to wait for: the common case)
 *    └──► skipped                                           (overlap, missed, excluded, a grant's end)
 * ```
 *
 * A waiting run is `pending` if no attempt was made and `retrying` if one was. So a run that a worker hands back untried is
 * pending again, and one that was lost with its worker is retrying. What was never tried is skipped, not failed; what was
 * tried is not skipped, for its attempts say that it ran. A terminal state never changes.
 */
export const RUN_STATES = ['pending', 'running', 'retrying', 'succeeded', 'failed', 'cancelled', 'skipped'] as const

export type RunState = (typeof RUN_STATES)[number]

/**
 * What a waiting run waits for (`carillon.run_wait`): another run of its schedule to end, a worker with room, its backoff, the
 * instant that its target named, or somebody else's completion.
 */
export type RunWait = 'turn' | 'worker' | 'retry' | 'deferred' | 'completion'

/** Why a slot did not run, or why its run was ended from outside (`carillon.run_reason`). Closed. */
export const RUN_REASONS = [
  'overlap',
  'missed',
  'paused',
  'grant_expired',
  'grant_revoked',
  'grant_scope',
  'access_lost',
  'excluded',
  'superseded',
] as const

export type RunReason = (typeof RUN_REASONS)[number]
