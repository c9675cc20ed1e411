import { randomInt } from 'node:crypto'

import { z } from 'zod'

import type { Caller } from '../caller.ts'
import { systemClock, type Clock } from '../clock.ts'
import { CarillonError } from '../errors.ts'
import { identifierAt } from '../identifier.ts'
import { isKeyText, keyHash, keyPrefix, newKeyText } from '../key-text.ts'
import { foundText } from '../policy/found-text.ts'
import {
  findApiKey,
  insertApiKey,
  listApiKeys,
  revokeApiKey,
  ROLES,
  type ApiKey,
  type Role,
} from '../store/api-keys.ts'
import type { Db } from '../store/database.ts'
import { readNow } from '../store/now.ts'
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

/** Begins with a letter or digit, so that nobody gets a key for `_platform`, which is the installation itself. */
const PLACE = /^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$/

const placeShape = expected('1 to 100 letters, digits, dots, dashes or underscores that begin with a letter or digit')
const place = z.string(placeShape).regex(PLACE, placeShape)

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
    const id = identifierAt(await readNow(this.#db, now))
    const secret = newKeyText(randomInt)
    const kept = { prefix: keyPrefix(secret), hash: keyHash(secret) }
    const apiKey = await insertApiKey(this.#db, { ...checked, ...kept, id, actor: caller.subject, now })
    return { apiKey, secret }
  }

  /** Those of the caller's project, the newest first, revoked ones too. */
  async list({ tenantId, projectId }: Caller, options: PageOptions = {}): Promise<ApiKey[]> {
    return listApiKeys(this.#db, { tenantId, projectId, ...checkedPage(options) })
  }

  /** Holds from the next request on. To revoke it again changes nothing: who did it first, and when, stays. */
  async revoke({ tenantId, projectId, subject }: Caller, id: string): Promise<ApiKey> {
    const now = this.#clock.databaseNow()
    const apiKey = isUuid(id)
      ? await revokeApiKey(this.#db, { tenantId, projectId, id, actor: subject, now })
      : undefined
    if (apiKey === undefined) throw keyNotFound(id)
    return apiKey
  }

  /** Whose key it is; undefined if it is none, or was revoked. Junk is told by its checksum and costs the database nothing. */
  async find(secret: string): Promise<ApiKey | undefined> {
    return isKeyText(secret) ? findApiKey(this.#db, { hash: keyHash(secret) }) : undefined
  }
}

function keyNotFound(id: unknown): CarillonError {
  return new CarillonError('key_not_found', `expected the id of a key of this project, got ${foundText(id)}`)
}
