import { createHash, randomBytes } from 'node:crypto'

import fc from 'fast-check'
import { describe, expect, test } from 'vitest'

import { CarillonError } from '../kernel/errors.ts'
import { NONCE_BYTES, SecretCipher, type SealedSecret } from './secret-cipher.ts'

const BINDING = { tenantId: 'acme', projectId: 'web', name: 'hook', version: 3 }
const VALUE = 'canary-5f1d'
const KEY = Buffer.alloc(32, 7)
const OTHER_KEY = Buffer.alloc(32, 8)
const NONCE = Buffer.alloc(NONCE_BYTES, 9)

function thrownBy(work: () => unknown): CarillonError {
  try {
    work()
  } catch (error) {
    if (error instanceof CarillonError) return error
    throw error
  }
  throw new Error('expected a CarillonError, got none')
}

/** Everything of an error that may appear in a log. */
function loggedText(error: CarillonError): string {
  return [error.message, error.stack, JSON.stringify(error.problems), String(error.cause)].join('\n')
}

test('a value is decrypted with the binding with which it was encrypted', () => {
  const cipher = new SecretCipher([KEY])
  const value = fc.string({ maxLength: 200 })
  const name = fc.string({ minLength: 1, maxLength: 20 })

  fc.assert(
    fc.property(value, name, name, name, fc.nat(), (text, tenantId, projectId, name, version) => {
      const binding = { tenantId, projectId, name, version }
      expect(cipher.open(binding, cipher.seal(binding, text, randomBytes(NONCE_BYTES)))).toBe(text)
    }),
  )
})

test('the ciphertext does not contain the value, and ends with its tag', () => {
  const sealed = new SecretCipher([KEY]).seal(BINDING, VALUE, NONCE)

  expect(sealed.ciphertext).toHaveLength(Buffer.byteLength(VALUE) + 16)
  expect(sealed.ciphertext.toString('latin1')).not.toContain(VALUE)
  expect(sealed.nonce).toEqual(NONCE)
})

test('the id of a key is sixteen hex digits of a hash that is used for nothing else', () => {
  const { keyId } = new SecretCipher([KEY, OTHER_KEY])

  expect(keyId).toMatch(/^[0-9a-f]{16}$/)
  expect(keyId).not.toBe(createHash('sha256').update(KEY).digest('hex').slice(0, 16))
  expect(keyId).not.toBe(new SecretCipher([OTHER_KEY]).keyId)
})

test('the first key encrypts, and each of the keys decrypts', () => {
  const before = new SecretCipher([KEY])
  const both = new SecretCipher([OTHER_KEY, KEY])

  expect(both.open(BINDING, before.seal(BINDING, VALUE, NONCE))).toBe(VALUE)
  expect(both.seal(BINDING, VALUE, NONCE).keyId).toBe(new SecretCipher([OTHER_KEY]).keyId)
})

test('a cipher copies its keys, so a later change of the given buffer has no effect', () => {
  const key = Buffer.from(KEY)
  const cipher = new SecretCipher([key])
  const sealed = new SecretCipher([KEY]).seal(BINDING, VALUE, NONCE)

  key.fill(0)

  expect(cipher.open(BINDING, sealed)).toBe(VALUE)
})

describe('a value is not decrypted', () => {
  test.each<[what: string, binding: Partial<typeof BINDING>]>([
    ['for another tenant', { tenantId: 'globex' }],
    ['for another project', { projectId: 'shop' }],
    ['for another name', { name: 'other' }],
    ['for another version', { version: 2 }],
    ['if tenant and project have the same letters, divided differently', { tenantId: 'acmew', projectId: 'eb' }],
    ['if the name ends with a digit of the version', { name: 'hook3', version: 3 }],
  ])('%s', (_what, changes) => {
    const cipher = new SecretCipher([KEY])
    const sealed = cipher.seal(BINDING, VALUE, NONCE)

    const error = thrownBy(() => cipher.open({ ...BINDING, ...changes }, sealed))

    expect(error.code).toBe('secrets_unavailable')
    expectNoSecrets(error, sealed)
  })

  test('if any of its bits is flipped', () => {
    const cipher = new SecretCipher([KEY])
    const sealed = cipher.seal(BINDING, VALUE, NONCE)

    for (let bit = 0; bit < sealed.ciphertext.length * 8; bit += 1) {
      const ciphertext = flipped(sealed.ciphertext, bit)
      expect(thrownBy(() => cipher.open(BINDING, { ...sealed, ciphertext })).code).toBe('secrets_unavailable')
    }
    for (let bit = 0; bit < NONCE_BYTES * 8; bit += 1) {
      const nonce = flipped(sealed.nonce, bit)
      expect(thrownBy(() => cipher.open(BINDING, { ...sealed, nonce })).code).toBe('secrets_unavailable')
    }
  })

  test.each([0, 1, 4, 15, 16])('if it is truncated to %i bytes', (length) => {
    const cipher = new SecretCipher([KEY])
    const sealed = cipher.seal(BINDING, VALUE, NONCE)
    const cut = { ...sealed, ciphertext: sealed.ciphertext.subarray(0, length) }

    expect(thrownBy(() => cipher.open(BINDING, cut)).code).toBe('secrets_unavailable')
  })

  test('without its key, even under the id of another key', () => {
    const sealed = new SecretCipher([KEY]).seal(BINDING, VALUE, NONCE)
    const other = new SecretCipher([OTHER_KEY])

    const unknown = thrownBy(() => other.open(BINDING, sealed))
    const renamed = thrownBy(() => other.open(BINDING, { ...sealed, keyId: other.keyId }))

    expect([unknown.code, renamed.code]).toEqual(['secrets_unavailable', 'secrets_unavailable'])
    expect(unknown.message).toContain(sealed.keyId)
    expectNoSecrets(unknown, sealed)
    expectNoSecrets(renamed, sealed)
  })
})

test.each([0, 16, 31, 33, 64])('a key of %i bytes is rejected, and the error does not contain it', (length) => {
  const key = Buffer.alloc(length, 'k')

  const error = thrownBy(() => new SecretCipher([KEY, key]))

  expect(error).toMatchObject({ code: 'invalid_input', problems: [{ path: 'keys[1]' }] })
  expect(error.message).toBe(`keys[1]: expected a key of 32 bytes, got ${length}`)
})

test('an empty list of keys is rejected', () => {
  expect(thrownBy(() => new SecretCipher([])).code).toBe('invalid_input')
})

function flipped(bytes: Buffer, bit: number): Buffer {
  const copy = Buffer.from(bytes)
  copy.writeUInt8(copy.readUInt8(bit >> 3) ^ (1 << (bit & 7)), bit >> 3)
  return copy
}

function expectNoSecrets(error: CarillonError, sealed: SealedSecret): void {
  const text = loggedText(error)
  for (const bytes of [Buffer.from(VALUE), KEY, OTHER_KEY, sealed.nonce, sealed.ciphertext]) {
    for (const encoding of ['utf8', 'hex', 'base64'] as const) expect(text).not.toContain(bytes.toString(encoding))
  }
}
