import { randomBytes } from 'node:crypto'

import { expectedText, NAME_PATTERN, namedSecretInputSchema } from '@carillon/api'

import type { Db } from '../db/database.ts'
import { transactScoped } from '../db/transact.ts'
import { checkedNamePage, checkedObject, type NamePageOptions } from '../kernel/checked-object.ts'
import { systemClock, type Clock } from '../kernel/clock.ts'
import { CarillonError } from '../kernel/errors.ts'
import { type Caller, scopeOf } from '../kernel/scope.ts'
import type { SecretName, SecretStore } from '../ports/secret-store.ts'
import { NONCE_BYTES, SecretCipher, secretsUnavailable } from './secret-cipher.ts'
import {
  deleteSecret,
  findKeptSecret,
  listSecrets,
  lockSecretName,
  saveSecret,
  type SecretRecord,
} from './store/secrets.ts'

export { countSecrets, listKnownSecrets } from './store/secrets.ts'
export type { SecretRecord } from './store/secrets.ts'

export interface SecretsDeps {
  readonly db: Db
  readonly clock?: Clock
  /** Each has 32 bytes. The first one encrypts; all of them decrypt. Null: no secret can be put. */
  readonly keys: readonly Buffer[] | null
}

/**
 * Secrets that schedules refer to by name (I8). No operation returns a value; only a target gets it, through the `SecretStore` of
 * its worker.
 *
 * Each value is bound to its tenant, project, name and version, so a ciphertext that is copied to another row does not decrypt. This
 * does not protect against a restored old row: an attacker who can write to the database can put back a complete earlier version.
 *
 * An operation that refuses a call throws a CarillonError with a closed `code` and has written nothing. No message contains a value.
 */
export class Secrets {
  readonly #db: Db
  readonly #clock: Clock
  readonly #cipher: SecretCipher | null

  /** @throws CarillonError `invalid_input` for a key that does not have 32 bytes */
  constructor(deps: SecretsDeps) {
    this.#db = deps.db
    this.#clock = deps.clock ?? systemClock
    this.#cipher = deps.keys === null ? null : new SecretCipher(deps.keys)
  }

  /** Stores a value and replaces the previous one. The next attempt uses it. */
  async put(caller: Caller, name: string, value: string): Promise<SecretRecord> {
    checkedObject({ name, value }, namedSecretInputSchema)
    const cipher = this.#cipher
    if (cipher === null) throw secretsUnavailable()
    const [scope, now] = [scopeOf(caller), this.#clock.databaseNow()]
    const secret = { ...scope, name }
    return transactScoped(this.#db, this.#clock, scope, async (tx) => {
      // The lock is a statement of its own: the next statement then sees what another put committed while this one waited.
      await lockSecretName(tx, secret)
      const version = ((await findKeptSecret(tx, secret))?.version ?? 0) + 1
      const sealed = cipher.seal({ ...secret, version }, value, randomBytes(NONCE_BYTES))
      return saveSecret(tx, { ...secret, ...sealed, version, actor: caller.subject, now })
    })
  }

  /** The secrets of the caller's project without their values, sorted by name. */
  async list(caller: Caller, options: NamePageOptions = {}): Promise<SecretRecord[]> {
    const [scope, page] = [scopeOf(caller), checkedNamePage(options)]
    return transactScoped(this.#db, this.#clock, scope, (tx) => listSecrets(tx, { ...scope, ...page }))
  }

  /** Deletes a secret. Attempts of schedules that still refer to it fail. */
  async delete(caller: Caller, name: string): Promise<SecretRecord> {
    const scope = scopeOf(caller)
    if (typeof name !== 'string' || !NAME_PATTERN.test(name)) throw secretNotFound(name)
    const deleted = await transactScoped(this.#db, this.#clock, scope, (tx) => deleteSecret(tx, { ...scope, name }))
    if (deleted === undefined) throw secretNotFound(name)
    return deleted
  }
}

export interface BuiltInSecretStoreDeps {
  /** With the role of workers: `<schema>_worker`. */
  readonly db: Db
  /** The same keys as those of `Secrets`. Null: no secret can be read. */
  readonly keys: readonly Buffer[] | null
}

/** The secrets of `Secrets`, for the targets of a worker. It reads the database for each attempt, so a new value is used at once. */
export class BuiltInSecretStore implements SecretStore {
  readonly #db: Db
  readonly #cipher: SecretCipher | null

  /** @throws CarillonError `invalid_input` for a key that does not have 32 bytes */
  constructor(deps: BuiltInSecretStoreDeps) {
    this.#db = deps.db
    this.#cipher = deps.keys === null ? null : new SecretCipher(deps.keys)
  }

  /** @throws CarillonError `secrets_unavailable` without a key, or for a secret that no key decrypts */
  async resolve({ tenantId, projectId, name }: SecretName): Promise<string | undefined> {
    if (this.#cipher === null) throw secretsUnavailable()
    const secret = { tenantId, projectId, name }
    const kept = await findKeptSecret(this.#db, secret)
    return kept && this.#cipher.open({ ...secret, version: kept.version }, kept)
  }
}

function secretNotFound(name: unknown): CarillonError {
  return new CarillonError('secret_not_found', expectedText('the name of a secret of this project', name))
}
