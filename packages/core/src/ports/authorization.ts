import type { Role } from '@carillon/api'

import type { Scope } from '../kernel/scope.ts'

/** May this subject act in this project, in this role, at this moment? */
export interface AccessRequest extends Scope {
  /** Typed: `user:alice`. */
  readonly subject: string
  readonly role: Role
}

/**
 * Decides who may do what. Carillon's server asks it for each API request. The worker asks it before each attempt about the schedule's
 * owner and the grant's subject: no run acts for a subject who lost access.
 *
 * Fails closed: an implementation that cannot decide throws. The server then answers the request with `unavailable`, and the
 * worker fails the attempt and retries it.
 */
export interface AuthorizationPort {
  isAllowed(request: AccessRequest): Promise<boolean>
}
