import { createHash, randomInt } from 'node:crypto'

import { describe, expect, test } from 'vitest'

import { isKeyText, keyHash, shownKeyPrefix, newKeyText } from './key-text.ts'

test('a key is a prefix, 32 random characters and a checksum of 6 characters', () => {
  const digits = Array.from({ length: 32 }, (_, index) => index)

  expect(newKeyText(() => digits.shift() ?? 0)).toMatch(/^car_0123456789ABCDEFGHIJKLMNOPQRSTUV[0-9A-Za-z]{6}$/)
  expect(newKeyText((below) => below - 1)).toMatch(/^car_z{32}[0-9A-Za-z]{6}$/)
})

test('generated keys are valid, and no two are the same', () => {
  const keys = Array.from({ length: 1000 }, () => newKeyText(randomInt))

  expect(keys.every(isKeyText)).toBe(true)
  expect(new Set(keys).size).toBe(1000)
  expect(new Set(keys.map((key) => key.length))).toEqual(new Set([42]))
})

test('a key with any one character mistyped is invalid', () => {
  const key = newKeyText(randomInt)
  const mistyped = Array.from(key, (char, at) => key.slice(0, at) + (char === 'a' ? 'b' : 'a') + key.slice(at + 1))

  expect(mistyped.filter(isKeyText)).toEqual([])
})

describe('an invalid key is recognized without a query', () => {
  test.each(['', 'car_', 'car', null, undefined, 7, {}, [], `car_${'0'.repeat(38)}`, `xar_${'0'.repeat(38)}`, '\0'])(
    '%j',
    (text) => {
      expect(isKeyText(text)).toBe(false)
    },
  )

  test('a key with other characters around it', () => {
    const key = newKeyText(randomInt)

    expect([` ${key}`, `${key}\n`, `${key}0`, key.toLowerCase(), [key]].filter(isKeyText)).toEqual([])
  })
})

test('the shown prefix of a key is its first 12 characters, and its hash is its SHA-256', () => {
  const key = newKeyText(randomInt)

  expect(shownKeyPrefix(key)).toBe(key.slice(0, 12))
  expect(keyHash(key)).toEqual(createHash('sha256').update(key).digest())
})
