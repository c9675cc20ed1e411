import { z } from 'zod'

import type { Caller } from '../caller.ts'
import { systemClock, type Clock } from '../clock.ts'
import { CarillonError, invalidInput } from '../errors.ts'
import { identifierAt } from '../identifier.ts'
import { foundText } from '../policy/found-text.ts'
import type { Db } from '../store/database.ts'
import { findGrant, insertGrant, listGrants, revokeGrant, type Grant } from '../store/grants.ts'
import { readNow } from '../store/now.ts'
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
  /** 1..50 of `<kind>:<verb>:<object>`, such as `http:dispatch:example.com`; `*` is every object. */
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
const SCOPE = /^[^\s:*]+:[^\s:*]+:([^\s*]+|\*)$/
/** The years that cadences know. */
const LAST_INSTANT = Date.parse('9999-12-31T23:59:59.999Z')

const scopeShape = expected(
  'a scope such as http:dispatch:example.com, or http:dispatch:* for every object of that kind and verb',
)
const scopesShape = expected(`a list of 1 to ${SCOPES_MAX} scopes`)
const instantShape = expected('an instant in epoch milliseconds')

const GRANT_INPUT = z.strictObject(
  {
    subject: typedSubject.optional(),
    scopes: z
      .array(z.string(scopeShape).refine(isScope, scopeShape), scopesShape)
      .min(1, scopesShape)
      .max(SCOPES_MAX, scopesShape),
    billingAccountId: storableText(ACCOUNT_MAX_LENGTH).nullish(),
    expiresAt: z.int(instantShape).min(0, instantShape).max(LAST_INSTANT, instantShape).nullish(),
  },
  expected('an object'),
)

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
    const now = this.#clock.databaseNow()
    // By the clock that will end it (I10).
    const at = await readNow(this.#db, now)
    const { subject = caller.subject, scopes, billingAccountId = null, expiresAt = null } = checked
    if (expiresAt !== null && expiresAt <= at) throw expiredAlready(expiresAt, at)
    const { tenantId, projectId } = caller
    const id = identifierAt(at)
    const actor = caller.subject
    return insertGrant(this.#db, { id, tenantId, projectId, subject, scopes, billingAccountId, expiresAt, actor, now })
  }

  async get({ tenantId, projectId }: Caller, id: string): Promise<Grant> {
    const grant = isUuid(id) ? await findGrant(this.#db, { tenantId, projectId, id }) : undefined
    if (grant === undefined) throw grantNotFound(id)
    return grant
  }

  /** Those of the caller's project, the newest first, ended ones too. */
  async list({ tenantId, projectId }: Caller, options: PageOptions = {}): Promise<Grant[]> {
    return listGrants(this.#db, { tenantId, projectId, ...checkedPage(options) })
  }

  /** Holds from the next begin on; what runs already goes on. To revoke it again changes nothing. */
  async revoke({ tenantId, projectId, subject }: Caller, id: string): Promise<Grant> {
    const now = this.#clock.databaseNow()
    const grant = isUuid(id) ? await revokeGrant(this.#db, { tenantId, projectId, id, actor: subject, now }) : undefined
    if (grant === undefined) throw grantNotFound(id)
    return grant
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
