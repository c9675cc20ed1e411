import type { AccessRequest, AuthorizationPort } from '../authorization.ts'
import { ROLES, type Role } from '../role.ts'
import { Members, type MembersDeps } from './members.ts'

/**
 * The built-in authorization: what `Members` says. A subject without a row is allowed, for its credential has said its role
 * already; a row takes away what is above its role, and from who was removed everything.
 */
export class MemberAuthorization implements AuthorizationPort {
  readonly #members: Members

  constructor(deps: MembersDeps) {
    this.#members = new Members(deps)
  }

  async isAllowed({ tenantId, projectId, subject, role }: AccessRequest): Promise<boolean> {
    const member = await this.#members.find({ tenantId, projectId }, subject)
    if (member === undefined) return true
    return member.removedAt === null && covers(member.role, role)
  }
}

/** Roles are told from the least on. */
function covers(role: Role, asked: Role): boolean {
  return ROLES.indexOf(role) >= ROLES.indexOf(asked)
}
