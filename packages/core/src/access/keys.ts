import { randomInt } from 'node:crypto'

import { expected, expectedText, isUuid, roleSchema, scopeNameSchema, typedSubject } from '@carillon/api'
import { z } from 'zod'

import type { Db } from '../db/database.ts'
import { readTransactionTime } from '../db/now.ts'
import { transactScoped } from '../db/transact.ts'
import { checkedObject, checkedPage, type PageOptions } from '../kernel/checked-object.ts'
import { systemClock, type Clock } from '../kernel/clock.ts'
import { CarillonError } from '../kernel/errors.ts'
import { identifierAt } from '../kernel/ids.ts'
import { type Caller, scopeOf } from '../kernel/scope.ts'
import { isKeyText, keyHash, shownKeyPrefix, newKeyText } from './key-text.ts'
import { findApiKey, insertApiKey, listApiKeys, revokeApiKey, type ApiKey } from './store/keys.ts'

export type { ApiKey } from './store/keys.ts'

export interface KeysDeps {
  readonly db: Db
  readonly clock?: Clock
}

/** The contract's `KeyInput`, except that the scope has the field names of `Scope`, and the tenant has no default. */
const KEY_INPUT = z.strictObject(
  { tenantId: scopeNameSchema, projectId: scopeNameSchema, subject: typedSubject, role: roleSchema },
  expected('an object'),
)

/** The project of a new key, the subject that it acts for, and its role. */
export type KeyInput = z.input<typeof KEY_INPUT>

/**
 * API keys. This class does not check whether the caller may create a key for a subject: the code that uses the class must.
 *
 * An operation that refuses a call throws a CarillonError with a closed `code` and has written nothing.
 */
export class Keys {
  readonly #db: Db
  readonly #clock: Clock

  constructor(deps: KeysDeps) {
    this.#db = deps.db
    this.#clock = deps.clock ?? systemClock
  }

  /** Returns the secret once. Only its hash is stored. */
  async create(caller: Caller, input: KeyInput): Promise<{ apiKey: ApiKey; secret: string }> {
    const checked = checkedObject(input, KEY_INPUT, { tenantId: 'tenant', projectId: 'project' })
    const now = this.#clock.databaseNow()
    const secret = newKeyText(randomInt)
    const kept = { prefix: shownKeyPrefix(secret), hash: keyHash(secret), actor: caller.subject, now }
    // In the scope of the key's project, which may differ from the caller's.
    const apiKey = await transactScoped(this.#db, this.#clock, scopeOf(checked), async (tx) =>
      insertApiKey(tx, { ...checked, ...kept, id: identifierAt(await readTransactionTime(tx, now)) }),
    )
    return { apiKey, secret }
  }

  /** The keys of the caller's project, revoked ones too, newest first. */
  async list(caller: Caller, options: PageOptions = {}): Promise<ApiKey[]> {
    const [scope, page] = [scopeOf(caller), checkedPage(options)]
    return transactScoped(this.#db, this.#clock, scope, (tx) => listApiKeys(tx, { ...scope, ...page }))
  }

  /** Takes effect with the next request. A second revocation changes nothing: actor and time of the first one stay. */
  async revoke(caller: Caller, id: string): Promise<ApiKey> {
    if (!isUuid(id)) throw keyNotFound(id)
    const scope = scopeOf(caller)
    const revocation = { ...scope, id, actor: caller.subject, now: this.#clock.databaseNow() }
    const apiKey = await transactScoped(this.#db, this.#clock, scope, (tx) => revokeApiKey(tx, revocation))
    if (apiKey === undefined) throw keyNotFound(id)
    return apiKey
  }

  /** Finds a key by its secret; undefined if there is none, or if it was revoked. A text with a wrong checksum costs no query. */
  async find(secret: string): Promise<ApiKey | undefined> {
    if (!isKeyText(secret)) return undefined
    const hash = keyHash(secret)
    // The project is not known yet. A row-level security policy shows this transaction the row with this hash, and no other.
    const settings = { 'carillon.key_hash': hash.toString('hex') }
    return transactScoped(this.#db, this.#clock, null, (tx) => findApiKey(tx, { hash }), settings)
  }
}

function keyNotFound(id: unknown): CarillonError {
  return new CarillonError('key_not_found', expectedText('the id of a key of this project', id))
}
