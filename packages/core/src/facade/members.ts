import { z } from 'zod'

import type { Caller } from '../caller.ts'
import { systemClock, type Clock } from '../clock.ts'
import { placeOf } from '../place.ts'
import { ROLES, type Role } from '../role.ts'
import type { Db, Tx } from '../store/database.ts'
import { findMember, listMembers, removeMember, saveMember, type Member } from '../store/members.ts'
import { transactWithin, type Place } from '../store/walled-transaction.ts'
import { checkedObject, expected, typedSubject } from './checked-object.ts'
import { checkedNamePage, type NamePageOptions } from './name-page.ts'
import { isNameableSubject } from './stored-text.ts'

export interface MembersDeps {
  readonly db: Db
  readonly clock?: Clock
}

const MEMBER_INPUT = z.strictObject({
  subject: typedSubject,
  role: z.enum(ROLES, expected(`one of ${ROLES.join(', ')}`)),
})

const REMOVAL_INPUT = MEMBER_INPUT.pick({ subject: true })

/**
 * Who has which role in a project. Whoever has no row may do what their credential says; a row limits that, and takes
 * everything from who was removed: their keys and tokens, and their schedules, whose slots are skipped `access_lost` (E-28).
 *
 * Throws CarillonError with a closed `code`; whatever throws has written nothing.
 */
export class Members {
  readonly #db: Db
  readonly #clock: Clock

  constructor(deps: MembersDeps) {
    this.#db = deps.db
    this.#clock = deps.clock ?? systemClock
  }

  /** Adds a member, or gives one another role. One that was removed is back. */
  async put(caller: Caller, subject: string, role: Role): Promise<Member> {
    const checked = checkedObject({ subject, role }, MEMBER_INPUT)
    const place = placeOf(caller)
    const addition = { ...place, ...checked, actor: caller.subject, now: this.#clock.databaseNow() }
    return this.#transact(place, (tx) => saveMember(tx, addition))
  }

  /**
   * Holds from the next request, and from the next attempt of its schedules on. Listed or not: who comes by a token never is.
   * A mistyped subject is removed as well, so the answer shows whom. To remove it again changes nothing.
   */
  async remove(caller: Caller, subject: string): Promise<Member> {
    const checked = checkedObject({ subject }, REMOVAL_INPUT)
    const place = placeOf(caller)
    const removal = { ...place, ...checked, actor: caller.subject, now: this.#clock.databaseNow() }
    return this.#transact(place, (tx) => removeMember(tx, removal))
  }

  /** Those of the caller's project by subject, removed ones too. */
  async list(caller: Caller, options: NamePageOptions = {}): Promise<Member[]> {
    const [place, page] = [placeOf(caller), checkedNamePage(options)]
    return this.#transact(place, (tx) => listMembers(tx, { ...place, ...page }))
  }

  /** A member of a project, removed ones too; undefined if there never was one of that subject. */
  async find(project: Place, subject: string): Promise<Member | undefined> {
    const place = placeOf(project)
    if (!isTypedSubject(subject)) return undefined
    return this.#transact(place, (tx) => findMember(tx, { ...place, subject }))
  }

  #transact<Result>(place: Place, work: (tx: Tx) => Promise<Result>): Promise<Result> {
    return transactWithin(this.#db, this.#clock, place, work)
  }
}

function isTypedSubject(subject: unknown): subject is string {
  return typeof subject === 'string' && isNameableSubject(subject)
}
