import { expectedText, grantInputSchema, grantRenewalSchema, isUuid } from '@carillon/api'
import type { z } from 'zod'

import type { Db, Tx } from '../db/database.ts'
import { lockSchedules } from '../db/locks.ts'
import { readTransactionTime } from '../db/now.ts'
import { insertChanges } from '../db/schedule-changes.ts'
import { transactScoped } from '../db/transact.ts'
import { checkedObject, checkedPage, epochMs, type PageOptions } from '../kernel/checked-object.ts'
import { systemClock, type Clock } from '../kernel/clock.ts'
import { CarillonError, invalidInput } from '../kernel/errors.ts'
import { identifierAt } from '../kernel/ids.ts'
import { type Caller, type Scope, scopeOf } from '../kernel/scope.ts'
import { findGrant, insertGrant, listGrants, renewGrant, revokeGrant, type Grant } from './store/grants.ts'

export { findGrant, findGrants, revokeOwnGrants } from './store/grants.ts'
export type { Grant } from './store/grants.ts'
export { nameOfMember, readPermissions } from './store/permissions.ts'
export type { Permissions, RunOfGrant } from './store/permissions.ts'

export interface GrantsDeps {
  readonly db: Db
  readonly clock?: Clock
}

/** The input of the contract, except that instants are epoch milliseconds here. */
const GRANT_INPUT = grantInputSchema.extend({ expiresAt: epochMs.nullish() })

export type GrantInput = z.input<typeof GRANT_INPUT>

const RENEWAL = grantRenewalSchema.extend({ expiresAt: epochMs.nullable() })

/** The new expiry of a grant; null: it never expires. */
export type GrantRenewal = z.input<typeof RENEWAL>

/**
 * Durable, scoped, revocable permissions to execute (I8). A slot that its schedule's grant does not allow is skipped.
 *
 * An operation that refuses a call throws a CarillonError with a closed `code` and has written nothing.
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
    const scope = scopeOf(caller)
    const now = this.#clock.databaseNow()
    const { subject = caller.subject, scopes, billingAccountId = null, expiresAt = null } = checked
    return this.#transact(scope, async (tx) => {
      // Compare by Postgres' clock, which also decides when the grant expires (I10).
      const at = await readTransactionTime(tx, now)
      if (expiresAt !== null && expiresAt <= at) throw expiredAlready(expiresAt, at)
      const [id, actor] = [identifierAt(at), caller.subject]
      return insertGrant(tx, { ...scope, id, subject, scopes, billingAccountId, expiresAt, actor, now })
    })
  }

  async get(caller: Caller, id: string): Promise<Grant> {
    const scope = scopeOf(caller)
    const grant = isUuid(id) ? await this.#transact(scope, (tx) => findGrant(tx, { ...scope, id })) : undefined
    if (grant === undefined) throw grantNotFound(id)
    return grant
  }

  /** The grants of the caller's project, revoked and expired ones too, newest first. */
  async list(caller: Caller, options: PageOptions = {}): Promise<Grant[]> {
    const [scope, page] = [scopeOf(caller), checkedPage(options)]
    return this.#transact(scope, (tx) => listGrants(tx, { ...scope, ...page }))
  }

  /** Takes effect with the next attempt; an attempt in progress goes on. A second revocation changes nothing. */
  async revoke(caller: Caller, id: string): Promise<Grant> {
    if (!isUuid(id)) throw grantNotFound(id)
    const scope = scopeOf(caller)
    const revocation = { ...scope, id, actor: caller.subject, now: this.#clock.databaseNow() }
    return this.#transact(scope, async (tx) => {
      const before = await this.#lockOwner(tx, scope, id)
      const grant = await revokeGrant(tx, revocation)
      if (grant === undefined) throw grantNotFound(id)
      if (before?.revokedAt === null) await this.#recordChange(tx, caller, grant, 'grant_revoked')
      return grant
    })
  }

  /**
   * Changes when a grant expires, also if it has expired already. A revoked grant cannot be renewed: create another one. Takes effect
   * with the next attempt.
   */
  async renew(caller: Caller, id: string, input: GrantRenewal): Promise<Grant> {
    const { expiresAt } = checkedObject(input, RENEWAL)
    if (!isUuid(id)) throw grantNotFound(id)
    const scope = scopeOf(caller)
    return this.#transact(scope, async (tx) => {
      const at = await readTransactionTime(tx, this.#clock.databaseNow())
      if (expiresAt !== null && expiresAt <= at) throw expiredAlready(expiresAt, at)
      await this.#lockOwner(tx, scope, id)
      const grant = await renewGrant(tx, { ...scope, id, expiresAt })
      if (grant === undefined) throw grantNotFound(id)
      if (grant.revokedAt === null) {
        await this.#recordChange(tx, caller, grant, 'grant_renewed')
        return grant
      }
      const message = 'expected a grant that is not revoked, got a revoked one: create another grant'
      throw new CarillonError('state_conflict', message)
    })
  }

  /**
   * Locks the schedule that the grant was created for, if there is one, because the lock order is schedules before grants. Returns the
   * grant as it was before the change.
   */
  async #lockOwner(tx: Tx, scope: Scope, id: string): Promise<Grant | undefined> {
    const grant = await findGrant(tx, { ...scope, id })
    if (grant !== undefined && grant.scheduleId !== null) await lockSchedules(tx, { scheduleIds: [grant.scheduleId] })
    return grant
  }

  /** A change of a schedule's own grant is part of the schedule's history. A shared grant is in no history. */
  async #recordChange(
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

  #transact<Result>(scope: Scope, work: (tx: Tx) => Promise<Result>): Promise<Result> {
    return transactScoped(this.#db, this.#clock, scope, work)
  }
}

function expiredAlready(expiresAt: number, now: number): CarillonError {
  const [got, present] = [expiresAt, now].map((instant) => new Date(instant).toISOString())
  return invalidInput([
    { path: 'expiresAt', message: `expected an instant after ${present}, which is now, got ${got}` },
  ])
}

function grantNotFound(id: unknown): CarillonError {
  return new CarillonError('grant_not_found', expectedText('the id of a grant of this project', id))
}
