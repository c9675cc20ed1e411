import type { Role } from './role.ts'

/** May this subject act in this project, in this role, at this moment? */
export interface AccessRequest {
  readonly tenantId: string
  readonly projectId: string
  /** Typed: `user:alice` (E-29). */
  readonly subject: string
  /** What is asked for: `member` reads, `admin` writes (E-27). */
  readonly role: Role
}

/**
 * Who may do what. Asked for each request to the API, and for the owner of a schedule before each attempt (E-28): whoever
 * lost access since then does not act any more.
 *
 * Fails closed: if it cannot tell, it throws. A request is then answered `unavailable`, an attempt fails and is tried again;
 * neither goes on as if the answer had been yes.
 */
export interface AuthorizationPort {
  isAllowed(request: AccessRequest): Promise<boolean>
}
