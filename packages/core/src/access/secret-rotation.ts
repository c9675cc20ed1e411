import { randomBytes } from 'node:crypto'

import type { Db } from '../db/database.ts'
import { transactScoped } from '../db/transact.ts'
import { systemClock, type Clock } from '../kernel/clock.ts'
import { CarillonError } from '../kernel/errors.ts'
import type { SecretName } from '../ports/secret-store.ts'
import { NONCE_BYTES, SecretCipher, type SecretBinding } from './secret-cipher.ts'
import {
  findKeptSecret,
  listSecretsOfOtherKeys,
  lockSecretName,
  resealSecret,
  type StoredSecret,
} from './store/secrets.ts'

export interface SecretRotationDeps {
  /** With the role of a worker, which may list the secrets of all tenants. Each secret is then changed in the scope of its project. */
  readonly db: Db
  readonly clock?: Clock
  /** The new key first, then the old ones. */
  readonly keys: readonly Buffer[]
}

export interface RotatedSecrets {
  /** How many secrets this call encrypted with the new key. */
  readonly reencrypted: number
  /** Secrets that no key decrypts. They stay as they are. */
  readonly unreadable: readonly SecretName[]
}

const SECRETS_PER_PAGE = 200

/**
 * Replaces the installation's key: encrypts all secrets with the first key. Once that is done and every server and worker has the first
 * key, the other keys can be removed. It can be interrupted and called again at any time, while secrets are put and used.
 */
export class SecretRotation {
  readonly #db: Db
  readonly #clock: Clock
  readonly #cipher: SecretCipher

  constructor(deps: SecretRotationDeps) {
    this.#db = deps.db
    this.#clock = deps.clock ?? systemClock
    this.#cipher = new SecretCipher(deps.keys)
  }

  async reencryptAll(): Promise<RotatedSecrets> {
    const unreadable: SecretName[] = []
    let reencrypted = 0
    for (let after: SecretName | null = null; ;) {
      const page = await listSecretsOfOtherKeys(this.#db, { keyId: this.#cipher.keyId, after, limit: SECRETS_PER_PAGE })
      for (const secret of page) {
        const outcome = await this.#reencrypt(secret)
        if (outcome === 'unreadable') unreadable.push(secret)
        if (outcome === 'reencrypted') reencrypted += 1
      }
      if (page.length < SECRETS_PER_PAGE) return { reencrypted, unreadable }
      after = page.at(-1) ?? null
    }
  }

  /** Holds the lock on the name, as a put does, so it reads and writes the same version. */
  #reencrypt(secret: SecretName): Promise<'reencrypted' | 'unreadable' | 'gone'> {
    return transactScoped(this.#db, this.#clock, secret, async (tx) => {
      await lockSecretName(tx, secret)
      const kept = await findKeptSecret(tx, secret)
      if (kept === undefined || kept.keyId === this.#cipher.keyId) return 'gone'
      const binding = { ...secret, version: kept.version }
      const value = this.#opened(binding, kept)
      if (value === undefined) return 'unreadable'
      await resealSecret(tx, { ...binding, ...this.#cipher.seal(binding, value, randomBytes(NONCE_BYTES)) })
      return 'reencrypted'
    })
  }

  #opened(binding: SecretBinding, kept: StoredSecret): string | undefined {
    try {
      return this.#cipher.open(binding, kept)
    } catch (error) {
      if (error instanceof CarillonError && error.code === 'secrets_unavailable') return undefined
      throw error
    }
  }
}
