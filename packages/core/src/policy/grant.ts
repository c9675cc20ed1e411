import type { RunReason } from './run-state.ts'

/** What counts of a grant when a run begins. */
export interface GrantFacts {
  readonly expiresAt: number | null
  readonly revokedAt: number | null
  readonly scopes: readonly string[]
}

/** Why a grant does not carry a run: the reason its slot is skipped with. */
export type GrantProblem = Extract<RunReason, 'grant_expired' | 'grant_revoked' | 'grant_scope'>

interface GrantCheck {
  /** Null for a schedule that acts by no grant; then there is nothing to check. */
  readonly grant: GrantFacts | null
  readonly now: number
  /** What the target needs, such as `http:dispatch:example.com`; null if nothing beyond a valid grant. */
  readonly requiredScope: string | null
}

const SCOPE = /^([^:]+:[^:]+):(.+)$/

/** Whether a grant carries a run at this moment (I8); null if it does. */
export function checkGrant({ grant, now, requiredScope }: GrantCheck): GrantProblem | null {
  if (grant === null) return null
  // Whatever its time: a revocation may have been committed after `now` was read. And before expiry: a person's
  // decision says more than a date.
  if (grant.revokedAt !== null) return 'grant_revoked'
  if (grant.expiresAt !== null && now >= grant.expiresAt) return 'grant_expired'
  if (requiredScope !== null && !grant.scopes.some((scope) => covers(scope, requiredScope))) return 'grant_scope'
  return null
}

/**
 * A scope is `<kind>:<verb>:<object>`; the object may hold colons (`localhost:3000`, `[::1]`). `*` stands for every
 * object of one kind and verb, and for nothing else: not for a part of an object, nor for a kind or a verb.
 */
function covers(scope: string, required: string): boolean {
  const held = SCOPE.exec(scope)
  const needed = SCOPE.exec(required)
  if (held === null || needed === null) return false
  return scope === required || (held[2] === '*' && held[1] === needed[1])
}
