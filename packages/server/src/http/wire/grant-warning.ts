import type { Grant } from '@carillon/api'
import { GRANT_WARNED_BEFORE_MS } from '@carillon/core'

interface GrantEnd {
  readonly expiresAt: number | null
  readonly isRevoked: boolean
}

/** What somebody should know of a grant. Whether it carries a run is decided by the database's clock (I10), not here. */
export function grantWarning({ expiresAt, isRevoked }: GrantEnd, now: number): Grant['warning'] {
  if (isRevoked) return 'revoked'
  if (expiresAt === null || expiresAt - now > GRANT_WARNED_BEFORE_MS) return null
  return expiresAt <= now ? 'expired' : 'expires_soon'
}
