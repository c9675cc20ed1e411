/**
 * The states of a run, in the words of the ledger (`carillon.run_state`).
 *
 * ```
 *                ┌──────────► skipped                       (never tried; its reason says why)
 *                │
 *  begin ──► pending ──► running ──► succeeded
 *    │           │        │ ▲ ├────► failed
 *    │           │        ▼ │ └────► cancelled
 *    │           │      retrying ──► failed                 (superseded by the next slot)
 *    │           └─────────┴───────► cancelled
 *    ├──► running                                           (nothing to wait for: the common case)
 *    └──► skipped                                           (overlap, missed, excluded, a grant's end)
 * ```
 *
 * A run that a worker hands back, or lost with its life, is `retrying`, not `pending`: it has been tried. What is pending
 * does not fail, for it was never tried; what is retrying is not skipped, for its attempts say that it was. A terminal state
 * never changes.
 */
export const RUN_STATES = ['pending', 'running', 'retrying', 'succeeded', 'failed', 'cancelled', 'skipped'] as const

export type RunState = (typeof RUN_STATES)[number]

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
