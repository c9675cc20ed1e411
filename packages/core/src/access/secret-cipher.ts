import { createCipheriv, createDecipheriv, createHash, createSecretKey, type KeyObject } from 'node:crypto'

import { CarillonError, invalidInput } from '../kernel/errors.ts'
import type { SecretName } from '../ports/secret-store.ts'

/** What a ciphertext is bound to: it decrypts only for this name and version in this project. */
export interface SecretBinding extends SecretName {
  readonly version: number
}

/** An encrypted value. */
export interface SealedSecret {
  /** The id of the installation's key that encrypted the value. */
  readonly keyId: string
  readonly nonce: Buffer
  /** Ends with the tag of AES-256-GCM. */
  readonly ciphertext: Buffer
}

const ALGORITHM = 'aes-256-gcm'
const KEY_BYTES = 32
export const NONCE_BYTES = 12
const TAG_BYTES = 16
const KEY_ID_LENGTH = 16
/** Domain separation: with these prefixes, a hash or a binding made here never equals one that is made for another purpose. */
const KEY_ID_DOMAIN = 'carillon.secret-key.v1\0'
const BINDING_DOMAIN = 'carillon.secret.v1'

/**
 * Encrypts with the first key and decrypts with any of them, so the installation's key can be replaced while workers run. No error
 * contains a key, a nonce or a value.
 */
export class SecretCipher {
  readonly #keys: ReadonlyMap<string, KeyObject>
  readonly #first: KeyObject
  /** The id of the first key. */
  readonly keyId: string

  /** @throws CarillonError `invalid_input` unless there is a key, and each has 32 bytes */
  constructor(keys: readonly Buffer[]) {
    requireKeys(keys)
    const known = keys.map((key): [string, KeyObject] => [keyIdOf(key), createSecretKey(key)])
    const [first] = known
    if (first === undefined) throw invalidInput([{ path: 'keys', message: 'expected at least one key, got none' }])
    this.#keys = new Map(known)
    ;[this.keyId, this.#first] = first
  }

  /** @param nonce 12 random bytes that were never used before: two values with the same nonce would reveal both */
  seal(binding: SecretBinding, value: string, nonce: Buffer): SealedSecret {
    const cipher = createCipheriv(ALGORITHM, this.#first, nonce, { authTagLength: TAG_BYTES })
    cipher.setAAD(bytesOf(binding))
    const ciphertext = Buffer.concat([cipher.update(value, 'utf8'), cipher.final(), cipher.getAuthTag()])
    return { keyId: this.keyId, nonce, ciphertext }
  }

  /** @throws CarillonError `secrets_unavailable` if the value was encrypted with another key or for another binding, or was altered */
  open(binding: SecretBinding, { keyId, nonce, ciphertext }: SealedSecret): string {
    const key = this.#keys.get(keyId)
    if (key === undefined) throw unknownKey(binding, keyId)
    try {
      const tagAt = ciphertext.length - TAG_BYTES
      const decipher = createDecipheriv(ALGORITHM, key, nonce, { authTagLength: TAG_BYTES })
      decipher.setAAD(bytesOf(binding))
      decipher.setAuthTag(ciphertext.subarray(tagAt))
      return Buffer.concat([decipher.update(ciphertext.subarray(0, tagAt)), decipher.final()]).toString('utf8')
    } catch {
      throw altered(binding)
    }
  }
}

/** The error of an installation without a key. */
export function secretsUnavailable(): CarillonError {
  return new CarillonError(
    'secrets_unavailable',
    'expected a key to encrypt secrets with, got none: set CARILLON_SECRETS_KEY, the same for servers and workers',
  )
}

function requireKeys(keys: readonly Buffer[]): void {
  const problems = keys.flatMap((key, index) =>
    key.length === KEY_BYTES
      ? []
      : [{ path: `keys[${index}]`, message: `expected a key of ${KEY_BYTES} bytes, got ${key.length}` }],
  )
  if (problems.length > 0) throw invalidInput(problems)
}

/** Identifies a key without revealing it. */
function keyIdOf(key: Buffer): string {
  return createHash('sha256').update(KEY_ID_DOMAIN).update(key).digest('hex').slice(0, KEY_ID_LENGTH)
}

/** Each part is prefixed with its length, so two different bindings never have the same bytes. */
function bytesOf({ tenantId, projectId, name, version }: SecretBinding): Buffer {
  const parts = [BINDING_DOMAIN, tenantId, projectId, name, String(version)].map((part) => Buffer.from(part, 'utf8'))
  return Buffer.concat(
    parts.flatMap((part) => {
      const length = Buffer.alloc(4)
      length.writeUInt32BE(part.length)
      return [length, part]
    }),
  )
}

function unknownKey({ name }: SecretBinding, keyId: string): CarillonError {
  return new CarillonError(
    'secrets_unavailable',
    `expected the key ${keyId}, which encrypted the secret ${name}, got only other keys: ` +
      'append it to CARILLON_SECRETS_KEY, separated by a comma, or put the secret again',
  )
}

function altered({ name }: SecretBinding): CarillonError {
  return new CarillonError(
    'secrets_unavailable',
    `expected the secret ${name} as it was put, got one that was altered or belongs elsewhere: put it again`,
  )
}
