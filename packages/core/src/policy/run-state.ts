/**
 * The states of a run, in the words of the ledger (`carillon.run_state`).
 *
 * ```
 *                ┌──────────► skipped                       (never tried; its reason says why)
 *                │
 *  begin ──► pending ──► running ──► succeeded
 *    │           │        │ ▲ ├────► failed
 *    │           │        ▼ │ └────► cancelled
 *    │           │      retrying ──► failed                 (superseded by the next slot, or its right was lost)
 *    │           └─────────┴───────► cancelled
 *    ├──► running                                           (nothing to wait for: the common case)
 *    └──► skipped                                           (overlap, missed, excluded, a grant's end)
 * ```
 *
 * A run that a worker hands back, or lost with its life, is `retrying`, not `pending`: it has been tried. A terminal
 * state never changes.
 */
export const RUN_STATES = ['pending', 'running', 'retrying', 'succeeded', 'failed', 'cancelled', 'skipped'] as const

export type RunState = (typeof RUN_STATES)[number]

export const TERMINAL_STATES = ['succeeded', 'failed', 'cancelled', 'skipped'] as const satisfies readonly RunState[]

export type TerminalState = (typeof TERMINAL_STATES)[number]

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

const NEXT_STATES: Readonly<Record<RunState, readonly RunState[]>> = {
  // Not to failed: what was never tried cannot have failed.
  pending: ['running', 'skipped', 'cancelled'],
  running: ['retrying', 'succeeded', 'failed', 'cancelled'],
  // Not to skipped: it has been tried, and its attempts say so.
  retrying: ['running', 'failed', 'cancelled'],
  succeeded: [],
  failed: [],
  cancelled: [],
  skipped: [],
}

/** Whether a run may go from one state to another. To stay is no transition. */
export function canTransition(from: RunState, to: RunState): boolean {
  return NEXT_STATES[from].includes(to)
}

/** Whether a run in this state is over for ever. */
export function isTerminal(state: RunState): state is TerminalState {
  return NEXT_STATES[state].length === 0
}
