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

/** Everything that somebody who logs an error may get to see. */
function told(error: CarillonError): string {
  return [error.message, error.stack, JSON.stringify(error.problems), String(error.cause)].join('\n')
}

test('a value opens for what it was sealed for', () => {
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

test('what is kept holds nothing of the value, and its tag is at its end', () => {
  const sealed = new SecretCipher([KEY]).seal(BINDING, VALUE, NONCE)

  expect(sealed.ciphertext).toHaveLength(Buffer.byteLength(VALUE) + 16)
  expect(sealed.ciphertext.toString('latin1')).not.toContain(VALUE)
  expect(sealed.nonce).toEqual(NONCE)
})

test('a key is known by sixteen digits of a hash that is made for that alone', () => {
  const { keyId } = new SecretCipher([KEY, OTHER_KEY])

  expect(keyId).toMatch(/^[0-9a-f]{16}$/)
  expect(keyId).not.toBe(createHash('sha256').update(KEY).digest('hex').slice(0, 16))
  expect(keyId).not.toBe(new SecretCipher([OTHER_KEY]).keyId)
})

test('the first key encrypts, and any of them opens', () => {
  const before = new SecretCipher([KEY])
  const both = new SecretCipher([OTHER_KEY, KEY])

  expect(both.open(BINDING, before.seal(BINDING, VALUE, NONCE))).toBe(VALUE)
  expect(both.seal(BINDING, VALUE, NONCE).keyId).toBe(new SecretCipher([OTHER_KEY]).keyId)
})

test('a key that is changed after it was given changes nothing', () => {
  const key = Buffer.from(KEY)
  const cipher = new SecretCipher([key])
  const sealed = new SecretCipher([KEY]).seal(BINDING, VALUE, NONCE)

  key.fill(0)

  expect(cipher.open(BINDING, sealed)).toBe(VALUE)
})

describe('a value does not open', () => {
  test.each<[what: string, binding: Partial<typeof BINDING>]>([
    ['for another tenant', { tenantId: 'globex' }],
    ['for another project', { projectId: 'shop' }],
    ['for another name', { name: 'other' }],
    ['for another version', { version: 2 }],
    ['where the same letters are cut elsewhere', { tenantId: 'acmew', projectId: 'eb' }],
    ['where a digit of the version is taken for one of the name', { name: 'hook3', version: 3 }],
  ])('%s', (_what, changes) => {
    const cipher = new SecretCipher([KEY])
    const sealed = cipher.seal(BINDING, VALUE, NONCE)

    const error = thrownBy(() => cipher.open({ ...BINDING, ...changes }, sealed))

    expect(error.code).toBe('secrets_unavailable')
    expectNothingTold(error, sealed)
  })

  test('with any bit of it turned', () => {
    const cipher = new SecretCipher([KEY])
    const sealed = cipher.seal(BINDING, VALUE, NONCE)

    for (let bit = 0; bit < sealed.ciphertext.length * 8; bit += 1) {
      const ciphertext = turned(sealed.ciphertext, bit)
      expect(thrownBy(() => cipher.open(BINDING, { ...sealed, ciphertext })).code).toBe('secrets_unavailable')
    }
    for (let bit = 0; bit < NONCE_BYTES * 8; bit += 1) {
      const nonce = turned(sealed.nonce, bit)
      expect(thrownBy(() => cipher.open(BINDING, { ...sealed, nonce })).code).toBe('secrets_unavailable')
    }
  })

  test.each([0, 1, 4, 15, 16])('cut to %i bytes', (length) => {
    const cipher = new SecretCipher([KEY])
    const sealed = cipher.seal(BINDING, VALUE, NONCE)
    const cut = { ...sealed, ciphertext: sealed.ciphertext.subarray(0, length) }

    expect(thrownBy(() => cipher.open(BINDING, cut)).code).toBe('secrets_unavailable')
  })

  test('without the key that it was sealed with, whatever name that key is given', () => {
    const sealed = new SecretCipher([KEY]).seal(BINDING, VALUE, NONCE)
    const other = new SecretCipher([OTHER_KEY])

    const unknown = thrownBy(() => other.open(BINDING, sealed))
    const renamed = thrownBy(() => other.open(BINDING, { ...sealed, keyId: other.keyId }))

    expect([unknown.code, renamed.code]).toEqual(['secrets_unavailable', 'secrets_unavailable'])
    expect(unknown.message).toContain(sealed.keyId)
    expectNothingTold(unknown, sealed)
    expectNothingTold(renamed, sealed)
  })
})

test.each([0, 16, 31, 33, 64])('a key of %i bytes is refused and not shown', (length) => {
  const key = Buffer.alloc(length, 'k')

  const error = thrownBy(() => new SecretCipher([KEY, key]))

  expect(error).toMatchObject({ code: 'invalid_input', problems: [{ path: 'keys[1]' }] })
  expect(error.message).toBe(`keys[1]: expected a key of 32 bytes, got ${length}`)
})

test('no key at all is refused', () => {
  expect(thrownBy(() => new SecretCipher([])).code).toBe('invalid_input')
})

function turned(bytes: Buffer, bit: number): Buffer {
  const copy = Buffer.from(bytes)
  copy.writeUInt8(copy.readUInt8(bit >> 3) ^ (1 << (bit & 7)), bit >> 3)
  return copy
}

function expectNothingTold(error: CarillonError, sealed: SealedSecret): void {
  const text = told(error)
  for (const bytes of [Buffer.from(VALUE), KEY, OTHER_KEY, sealed.nonce, sealed.ciphertext]) {
    for (const encoding of ['utf8', 'hex', 'base64'] as const) expect(text).not.toContain(bytes.toString(encoding))
  }
}
