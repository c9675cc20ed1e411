import type { Role } from '@carillon/api'

/** May this subject act in this project, in this role, at this moment? */
export interface AccessRequest {
  readonly tenantId: string
  readonly projectId: string
  /** Typed: `user:alice`. */
  readonly subject: string
  readonly role: Role
}

/**
 * Decides who may do what. The server asks it for each API request, and the worker asks it for a schedule's owner before each
 * attempt: an owner who lost access no longer acts.
 *
 * Fails closed: an implementation that cannot decide throws. The server then answers the request with `unavailable`, and the
 * worker fails the attempt and retries it.
 */
export interface AuthorizationPort {
  isAllowed(request: AccessRequest): Promise<boolean>
}
