import type { RunReason } from './run-state.ts'

/** What counts of a grant when a run begins. */
export interface GrantFacts {
  readonly expiresAt: number | null
  readonly revokedAt: number | null
  readonly scopes: readonly string[]
}

/** Why a grant does not carry a run: the reason its slot is skipped with. */
export type GrantProblem = Extract<RunReason, 'grant_expired' | 'grant_revoked' | 'grant_scope'>

/** Why a run may not act at this moment: because of its grant, or because its owner lost access to the project. */
export type Refusal = GrantProblem | 'access_lost'

const REFUSALS: ReadonlySet<unknown> = new Set([
  'grant_expired',
  'grant_revoked',
  'grant_scope',
  'access_lost',
] satisfies Refusal[])

/** Whether a slot was not run for want of a right; then it counts as a failure of its schedule. */
export function isRefusal(reason: RunReason | null): reason is Refusal {
  return REFUSALS.has(reason)
}

interface GrantCheck {
  readonly grant: GrantFacts
  readonly now: number
  /** What the target needs, such as `http:dispatch:example.com`. */
  readonly requiredScope: string
}

const SCOPE = /^([^:]+:[^:]+):(.+)$/

/** Whether a grant carries a run at this moment (I8); null if it does. */
export function checkGrant({ grant, now, requiredScope }: GrantCheck): GrantProblem | null {
  // Whatever its time: a revocation may have been committed after `now` was read. And before expiry: a person's
  // decision says more than a date.
  if (grant.revokedAt !== null) return 'grant_revoked'
  if (grant.expiresAt !== null && now >= grant.expiresAt) return 'grant_expired'
  if (!grant.scopes.some((scope) => covers(scope, requiredScope))) return 'grant_scope'
  return null
}

/**
 * A scope is `<kind>:<verb>:<object>`; the object may hold colons (`localhost:3000`, `[::1]`). `*` stands for every
 * object of one kind and verb, `*.example.com` for every one below that name but not for itself; a star stands for nothing
 * else: neither for another part of an object, nor for a kind or a verb.
 */
export function covers(scope: string, required: string): boolean {
  if (scope === required) return SCOPE.test(scope)
  const held = SCOPE.exec(scope)
  const needed = SCOPE.exec(required)
  if (held === null || needed === null) return false
  if (held[1] !== needed[1]) return false
  const [mine, theirs] = [held[2] ?? '', needed[2] ?? '']
  if (mine === '*') return true
  return mine.startsWith('*.') ? theirs.length >= mine.length && theirs.endsWith(mine.slice(1)) : mine === theirs
}
