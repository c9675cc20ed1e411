import { randomInt } from 'node:crypto'

import { z } from 'zod'

import type { Caller } from '../caller.ts'
import { systemClock, type Clock } from '../clock.ts'
import { CarillonError } from '../errors.ts'
import { identifierAt } from '../identifier.ts'
import { isKeyText, keyHash, keyPrefix, newKeyText } from '../key-text.ts'
import { PLACE_NAME, PLACE_NAME_EXPECTED, placeOf } from '../place.ts'
import { foundText } from '../policy/found-text.ts'
import { ROLES, type Role } from '../role.ts'
import { findApiKey, insertApiKey, listApiKeys, revokeApiKey, type ApiKey } from '../store/api-keys.ts'
import type { Db } from '../store/database.ts'
import { readNow } from '../store/now.ts'
import { transactWithin } from '../store/walled-transaction.ts'
import { isUuid } from '../uuid.ts'
import { checkedObject, checkedPage, expected, typedSubject, type PageOptions } from './checked-object.ts'

export interface KeysDeps {
  readonly db: Db
  readonly clock?: Clock
}

/** Whom a new key acts for, and what it may do. */
export interface KeyInput {
  readonly tenantId: string
  readonly projectId: string
  readonly subject: string
  readonly role: Role
}

const placeShape = expected(PLACE_NAME_EXPECTED)
const place = z.string(placeShape).regex(PLACE_NAME, placeShape)

const KEY_INPUT = z.strictObject(
  {
    tenantId: place,
    projectId: place,
    subject: typedSubject,
    role: z.enum(ROLES, expected(`one of ${ROLES.join(', ')}`)),
  },
  expected('an object'),
)

/**
 * API keys: who may call, and in whose name. Whether the caller may make one, and for whom, is for whoever asks to decide.
 *
 * Throws CarillonError with a closed `code`; whatever throws has written nothing.
 */
export class Keys {
  readonly #db: Db
  readonly #clock: Clock

  constructor(deps: KeysDeps) {
    this.#db = deps.db
    this.#clock = deps.clock ?? systemClock
  }

  /** The secret is told this once: only its hash is kept. */
  async create(caller: Caller, input: KeyInput): Promise<{ apiKey: ApiKey; secret: string }> {
    const checked = checkedObject(input, KEY_INPUT, { tenantId: 'tenant', projectId: 'project' })
    const now = this.#clock.databaseNow()
    const secret = newKeyText(randomInt)
    const kept = { prefix: keyPrefix(secret), hash: keyHash(secret), actor: caller.subject, now }
    // Behind the wall of the project that the key is for, which need not be the caller's.
    const apiKey = await transactWithin(this.#db, this.#clock, placeOf(checked), async (tx) =>
      insertApiKey(tx, { ...checked, ...kept, id: identifierAt(await readNow(tx, now)) }),
    )
    return { apiKey, secret }
  }

  /** Those of the caller's project, the newest first, revoked ones too. */
  async list(caller: Caller, options: PageOptions = {}): Promise<ApiKey[]> {
    const [place, page] = [placeOf(caller), checkedPage(options)]
    return transactWithin(this.#db, this.#clock, place, (tx) => listApiKeys(tx, { ...place, ...page }))
  }

  /** Holds from the next request on. To revoke it again changes nothing: who did it first, and when, stays. */
  async revoke(caller: Caller, id: string): Promise<ApiKey> {
    if (!isUuid(id)) throw keyNotFound(id)
    const place = placeOf(caller)
    const revocation = { ...place, id, actor: caller.subject, now: this.#clock.databaseNow() }
    const apiKey = await transactWithin(this.#db, this.#clock, place, (tx) => revokeApiKey(tx, revocation))
    if (apiKey === undefined) throw keyNotFound(id)
    return apiKey
  }

  /** Whose key it is; undefined if it is none, or was revoked. Junk is told by its checksum and costs the database nothing. */
  async find(secret: string): Promise<ApiKey | undefined> {
    if (!isKeyText(secret)) return undefined
    const hash = keyHash(secret)
    // Of no project yet: it sees the row of the key that was shown, and nothing else.
    const shown = { 'carillon.key_hash': hash.toString('hex') }
    return transactWithin(this.#db, this.#clock, null, (tx) => findApiKey(tx, { hash }), shown)
  }
}

function keyNotFound(id: unknown): CarillonError {
  return new CarillonError('key_not_found', `expected the id of a key of this project, got ${foundText(id)}`)
}
