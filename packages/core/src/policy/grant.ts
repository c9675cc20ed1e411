import type { RunReason } from '@carillon/api'

/** The facts about a grant that decide whether a run may act by it. */
export interface GrantFacts {
  readonly expiresAt: number | null
  readonly revokedAt: number | null
  readonly scopes: readonly string[]
}

/** Why a grant does not permit a run: the reason that the run's line gives. */
export type GrantRefusal = Extract<RunReason, 'grant_expired' | 'grant_revoked' | 'grant_scope'>

interface GrantCheck {
  readonly grant: GrantFacts
  readonly now: number
  /** The scope that the target needs, such as `http:dispatch:example.com`. */
  readonly requiredScope: string
}

const SCOPE = /^([^:]+:[^:]+):(.+)$/

/** Why a grant does not permit a run now (I8); null if it does. */
export function checkGrant({ grant, now, requiredScope }: GrantCheck): GrantRefusal | null {
  // `revokedAt` is not compared with `now`: a revocation may have been committed after `now` was read. It comes before
  // expiry, because a person's decision explains more than a date.
  if (grant.revokedAt !== null) return 'grant_revoked'
  if (grant.expiresAt !== null && now >= grant.expiresAt) return 'grant_expired'
  if (!grant.scopes.some((scope) => covers(scope, requiredScope))) return 'grant_scope'
  return null
}

/**
 * A scope is `<kind>:<verb>:<object>`; the object may contain colons (`localhost:3000`, `[::1]`). `*` covers every object of
 * one kind and verb, `*.example.com` every name below `example.com` but not itself. A star anywhere else covers nothing.
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
