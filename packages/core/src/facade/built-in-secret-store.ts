import { SecretCipher, secretsUnavailable } from '../secret-cipher.ts'
import type { SecretName, SecretStore } from '../secret-store.ts'
import type { Db } from '../store/database.ts'
import { findKeptSecret } from '../store/secrets.ts'

export interface BuiltInSecretStoreDeps {
  /** Of a worker: with the role `carillon_worker`. */
  readonly db: Db
  /** The same as those of `Secrets`. Null: none can be opened. */
  readonly keys: readonly Buffer[] | null
}

/** What `Secrets` keeps, for the targets of a worker. Read anew for each attempt: a value that was put is used at once. */
export class BuiltInSecretStore implements SecretStore {
  readonly #db: Db
  readonly #cipher: SecretCipher | null

  /** @throws CarillonError `invalid_input` for a key that has not 32 bytes */
  constructor(deps: BuiltInSecretStoreDeps) {
    this.#db = deps.db
    this.#cipher = deps.keys === null ? null : new SecretCipher(deps.keys)
  }

  /** @throws CarillonError `secrets_unavailable` without a key, or for a secret that this store's keys do not open */
  async resolve({ tenantId, projectId, name }: SecretName): Promise<string | undefined> {
    if (this.#cipher === null) throw secretsUnavailable()
    const secret = { tenantId, projectId, name }
    const kept = await findKeptSecret(this.#db, secret)
    return kept && this.#cipher.open({ ...secret, version: kept.version }, kept)
  }
}
