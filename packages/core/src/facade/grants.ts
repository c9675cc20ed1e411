import { z } from 'zod'

import type { Caller } from '../caller.ts'
import { systemClock, type Clock } from '../clock.ts'
import { CarillonError, invalidInput } from '../errors.ts'
import { identifierAt } from '../identifier.ts'
import { placeOf } from '../place.ts'
import { foundText } from '../policy/found-text.ts'
import type { Db, Tx } from '../store/database.ts'
import { findGrant, insertGrant, listGrants, renewGrant, revokeGrant, type Grant } from '../store/grants.ts'
import { readNow } from '../store/now.ts'
import { insertChanges } from '../store/schedule-changes.ts'
import { lockSchedules } from '../store/schedule-lock.ts'
import { transactWithin, type Place } from '../store/walled-transaction.ts'
import { isUuid } from '../uuid.ts'
import { checkedObject, checkedPage, expected, storableText, typedSubject, type PageOptions } from './checked-object.ts'
import { isStorable } from './stored-text.ts'

export interface GrantsDeps {
  readonly db: Db
  readonly clock?: Clock
}

export interface GrantInput {
  /** Who executes by it. @default the caller */
  readonly subject?: string | undefined
  /** 1..50 of `<kind>:<verb>:<object>`, such as `http:dispatch:example.com`; `*` is every object, `*.example.com` every name below. */
  readonly scopes: readonly string[]
  /** Who pays. */
  readonly billingAccountId?: string | null | undefined
  /** Epoch milliseconds. @default never */
  readonly expiresAt?: number | null | undefined
}

const SCOPES_MAX = 50
const SCOPE_MAX_LENGTH = 300
const ACCOUNT_MAX_LENGTH = 200
/** A star that is only a part would cover nothing, and whoever wrote it would believe that it did. */
const SCOPE = /^[^\s:*]+:[^\s:*]+:((\*\.)?[^\s*]+|\*)$/
/** The years that cadences know. */
const LAST_INSTANT = Date.parse('9999-12-31T23:59:59.999Z')

const scopeShape = expected(
  'a scope such as http:dispatch:example.com, http:dispatch:*.example.com for every name below it, or http:dispatch:* for every object of that kind and verb',
)
const scopesShape = expected(`a list of 1 to ${SCOPES_MAX} scopes`)
const instantShape = expected('an instant in epoch milliseconds')

const expiry = z.int(instantShape).min(0, instantShape).max(LAST_INSTANT, instantShape)

const GRANT_INPUT = z.strictObject(
  {
    subject: typedSubject.optional(),
    scopes: z
      .array(z.string(scopeShape).refine(isScope, scopeShape), scopesShape)
      .min(1, scopesShape)
      .max(SCOPES_MAX, scopesShape),
    billingAccountId: storableText(ACCOUNT_MAX_LENGTH).nullish(),
    expiresAt: expiry.nullish(),
  },
  expected('an object'),
)

/** Until when a grant is to last; null: for ever. */
export interface GrantRenewal {
  readonly expiresAt: number | null
}

const RENEWAL = z.strictObject({ expiresAt: expiry.nullable() }, expected('an object'))

/**
 * Durable, scoped, revocable rights to execute (I8). What a schedule's grant no longer carries is skipped from the next
 * slot on.
 *
 * Throws CarillonError with a closed `code`; whatever throws has written nothing.
 */
export class Grants {
  readonly #db: Db
  readonly #clock: Clock

  constructor(deps: GrantsDeps) {
    this.#db = deps.db
    this.#clock = deps.clock ?? systemClock
  }

  async create(caller: Caller, input: GrantInput): Promise<Grant> {
    const checked = checkedObject(input, GRANT_INPUT)
    const place = placeOf(caller)
    const now = this.#clock.databaseNow()
    const { subject = caller.subject, scopes, billingAccountId = null, expiresAt = null } = checked
    return this.#transact(place, async (tx) => {
      // By the clock that will end it (I10).
      const at = await readNow(tx, now)
      if (expiresAt !== null && expiresAt <= at) throw expiredAlready(expiresAt, at)
      const [id, actor] = [identifierAt(at), caller.subject]
      return insertGrant(tx, { ...place, id, subject, scopes, billingAccountId, expiresAt, actor, now })
    })
  }

  async get(caller: Caller, id: string): Promise<Grant> {
    const place = placeOf(caller)
    const grant = isUuid(id) ? await this.#transact(place, (tx) => findGrant(tx, { ...place, id })) : undefined
    if (grant === undefined) throw grantNotFound(id)
    return grant
  }

  /** Those of the caller's project, the newest first, ended ones too. */
  async list(caller: Caller, options: PageOptions = {}): Promise<Grant[]> {
    const [place, page] = [placeOf(caller), checkedPage(options)]
    return this.#transact(place, (tx) => listGrants(tx, { ...place, ...page }))
  }

  /** Holds from the next attempt on; what runs already goes on. To revoke it again changes nothing. */
  async revoke(caller: Caller, id: string): Promise<Grant> {
    if (!isUuid(id)) throw grantNotFound(id)
    const place = placeOf(caller)
    const revocation = { ...place, id, actor: caller.subject, now: this.#clock.databaseNow() }
    return this.#transact(place, async (tx) => {
      const before = await this.#lockOwner(tx, place, id)
      const grant = await revokeGrant(tx, revocation)
      if (grant === undefined) throw grantNotFound(id)
      if (before?.revokedAt === null) await this.#noteChange(tx, caller, grant, 'grant_revoked')
      return grant
    })
  }

  /**
   * Lets a grant last until another instant, or for ever; also one that has expired. What was revoked is not given back: make
   * another. Holds from the next attempt on.
   */
  async renew(caller: Caller, id: string, input: GrantRenewal): Promise<Grant> {
    const { expiresAt } = checkedObject(input, RENEWAL)
    if (!isUuid(id)) throw grantNotFound(id)
    const place = placeOf(caller)
    return this.#transact(place, async (tx) => {
      const at = await readNow(tx, this.#clock.databaseNow())
      if (expiresAt !== null && expiresAt <= at) throw expiredAlready(expiresAt, at)
      await this.#lockOwner(tx, place, id)
      const grant = await renewGrant(tx, { ...place, id, expiresAt })
      if (grant === undefined) throw grantNotFound(id)
      if (grant.revokedAt === null) {
        await this.#noteChange(tx, caller, grant, 'grant_renewed')
        return grant
      }
      const message =
        'expected a grant that is not revoked, got one that is: what was revoked is not given back, make another'
      throw new CarillonError('state_conflict', message)
    })
  }

  /** Schedules before grants, as everywhere: the one that it was made for, if there is one. */
  async #lockOwner(tx: Tx, place: Place, id: string): Promise<Grant | undefined> {
    const grant = await findGrant(tx, { ...place, id })
    if (grant !== undefined && grant.scheduleId !== null) await lockSchedules(tx, { scheduleIds: [grant.scheduleId] })
    return grant
  }

  /** What becomes of a schedule's own grant is part of its history, and told to who follows it. One that many share is its own. */
  async #noteChange(
    tx: Tx,
    { subject }: Caller,
    { scheduleId, expiresAt }: Grant,
    change: 'grant_revoked' | 'grant_renewed',
  ): Promise<void> {
    if (scheduleId === null) return
    const reason = change === 'grant_renewed' && expiresAt !== null ? new Date(expiresAt).toISOString() : null
    await insertChanges(tx, {
      scheduleIds: [scheduleId],
      change,
      actor: subject,
      reason,
      now: this.#clock.databaseNow(),
    })
  }

  #transact<Result>(place: Place, work: (tx: Tx) => Promise<Result>): Promise<Result> {
    return transactWithin(this.#db, this.#clock, place, work)
  }
}

function isScope(scope: string): boolean {
  return scope.length <= SCOPE_MAX_LENGTH && SCOPE.test(scope) && isStorable(scope)
}

function expiredAlready(expiresAt: number, now: number): CarillonError {
  const [got, present] = [expiresAt, now].map((instant) => new Date(instant).toISOString())
  return invalidInput([
    { path: 'expiresAt', message: `expected an instant after ${present}, which is now, got ${got}` },
  ])
}

function grantNotFound(id: unknown): CarillonError {
  return new CarillonError('grant_not_found', `expected the id of a grant of this project, got ${foundText(id)}`)
}
