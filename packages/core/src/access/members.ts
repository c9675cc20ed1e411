import { isNameableSubject, ROLES, roleSchema, typedSubject, type Role } from '@carillon/api'
import { z } from 'zod'

import type { Db, Tx } from '../db/database.ts'
import { transactScoped } from '../db/transact.ts'
import { checkedNamePage, checkedObject, type NamePageOptions } from '../kernel/checked-object.ts'
import { systemClock, type Clock } from '../kernel/clock.ts'
import { type Caller, type Scope, scopeOf } from '../kernel/scope.ts'
import type { AccessRequest, AuthorizationPort } from '../ports/authorization.ts'
import { findMember, listMembers, removeMember, saveMember, type Member } from './store/members.ts'

export { listRemoved } from './store/members.ts'
export type { Member } from './store/members.ts'

export interface MembersDeps {
  readonly db: Db
  readonly clock?: Clock
}

const MEMBER_INPUT = z.strictObject({ subject: typedSubject, role: roleSchema })

const REMOVAL_INPUT = MEMBER_INPUT.pick({ subject: true })

/**
 * The roles of subjects in a project. A subject without a row has the role of its credential. A row limits that role. A removed
 * member has no access at all: its keys and tokens are refused, and the slots of its schedules are skipped as `access_lost`.
 *
 * An operation that refuses a call throws a CarillonError with a closed `code` and has written nothing.
 */
export class Members {
  readonly #db: Db
  readonly #clock: Clock

  constructor(deps: MembersDeps) {
    this.#db = deps.db
    this.#clock = deps.clock ?? systemClock
  }

  /** Adds a member, or changes its role. A removed member gets access again. */
  async put(caller: Caller, subject: string, role: Role): Promise<Member> {
    const checked = checkedObject({ subject, role }, MEMBER_INPUT)
    const scope = scopeOf(caller)
    const addition = { ...scope, ...checked, actor: caller.subject, now: this.#clock.databaseNow() }
    return this.#transact(scope, (tx) => saveMember(tx, addition))
  }

  /**
   * A removal takes effect with the subject's next request, and with the next attempt of its schedules. It also works for a subject that
   * was never added, because subjects with tokens of an identity provider need no row. So a mistyped subject is no error: the answer
   * shows which subject was removed. A second removal changes nothing.
   */
  async remove(caller: Caller, subject: string): Promise<Member> {
    const checked = checkedObject({ subject }, REMOVAL_INPUT)
    const scope = scopeOf(caller)
    const removal = { ...scope, ...checked, actor: caller.subject, now: this.#clock.databaseNow() }
    return this.#transact(scope, (tx) => removeMember(tx, removal))
  }

  /** The members of the caller's project, removed ones too, sorted by subject. */
  async list(caller: Caller, options: NamePageOptions = {}): Promise<Member[]> {
    const [scope, page] = [scopeOf(caller), checkedNamePage(options)]
    return this.#transact(scope, (tx) => listMembers(tx, { ...scope, ...page }))
  }

  /** A member, also if it was removed; undefined if the project never had a member with this subject. */
  async find(project: Scope, subject: string): Promise<Member | undefined> {
    const scope = scopeOf(project)
    if (!isTypedSubject(subject)) return undefined
    return this.#transact(scope, (tx) => findMember(tx, { ...scope, subject }))
  }

  #transact<Result>(scope: Scope, work: (tx: Tx) => Promise<Result>): Promise<Result> {
    return transactScoped(this.#db, this.#clock, scope, work)
  }
}

function isTypedSubject(subject: unknown): subject is string {
  return typeof subject === 'string' && isNameableSubject(subject)
}

/**
 * The built-in authorization. A row in the table of members can only narrow what a subject may do: it caps the subject's role, or
 * removes the subject. A subject without a row is allowed, because the server has already checked that the credential carries the
 * role that the operation requires.
 */
export class MembershipAuthorization implements AuthorizationPort {
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

/** `ROLES` lists the roles from the weakest to the strongest. */
function covers(role: Role, required: Role): boolean {
  return ROLES.indexOf(role) >= ROLES.indexOf(required)
}
