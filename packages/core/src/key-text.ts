import { createHash } from 'node:crypto'
import { crc32 } from 'node:zlib'

/*
 * An API key as text: `car_`, 32 random characters, and 6 that are their checksum. The mark lets scanners of repositories
 * find a key that leaked; the checksum tells a mistyped one, or junk, without asking the database.
 */

const MARK = 'car_'
const DIGITS = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz'
const RANDOM_LENGTH = 32
const CHECKSUM_LENGTH = 6
const PREFIX_LENGTH = 12
const KEY = new RegExp(`^(${MARK}[0-9A-Za-z]{${RANDOM_LENGTH}})([0-9A-Za-z]{${CHECKSUM_LENGTH}})$`)

/** @param draw an unpredictable whole number below its argument, each as likely as the others */
export function newKeyText(draw: (below: number) => number): string {
  const random = Array.from({ length: RANDOM_LENGTH }, () => DIGITS.charAt(draw(DIGITS.length))).join('')
  return MARK + random + checksumOf(MARK + random)
}

/** Whether it could be a key at all. Most of what is no key is told here. */
export function isKeyText(text: unknown): text is string {
  if (typeof text !== 'string') return false
  const [, random, checksum] = KEY.exec(text) ?? []
  return random !== undefined && checksumOf(random) === checksum
}

/** What is shown of a key: enough to tell keys apart, too little to open anything. */
export function keyPrefix(text: string): string {
  return text.slice(0, PREFIX_LENGTH)
}

/** What is kept of a key. SHA-256: a key is long and random, so a slow hash would only slow every request. */
export function keyHash(text: string): Buffer {
  return createHash('sha256').update(text).digest()
}

/** CRC-32 in base 62, which fits 6 characters. */
function checksumOf(text: string): string {
  let digits = ''
  for (let left = crc32(text); left > 0; left = Math.floor(left / DIGITS.length)) {
    digits = DIGITS.charAt(left % DIGITS.length) + digits
  }
  return digits.padStart(CHECKSUM_LENGTH, DIGITS.charAt(0))
}
