import { createHash } from 'node:crypto'
import { crc32 } from 'node:zlib'

/*
 * The text of an API key: `car_`, 32 random characters, and a checksum of 6 characters. Secret scanners find a leaked key by its
 * prefix. The checksum rejects a mistyped key without a query.
 */

const MARK = 'car_'
const DIGITS = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz'
const RANDOM_LENGTH = 32
const CHECKSUM_LENGTH = 6
const PREFIX_LENGTH = 12
const KEY = new RegExp(`^(${MARK}[0-9A-Za-z]{${RANDOM_LENGTH}})([0-9A-Za-z]{${CHECKSUM_LENGTH}})$`)

/** @param draw returns an unpredictable whole number below its argument, evenly distributed */
export function newKeyText(draw: (below: number) => number): string {
  const random = Array.from({ length: RANDOM_LENGTH }, () => DIGITS.charAt(draw(DIGITS.length))).join('')
  return MARK + random + checksumOf(MARK + random)
}

/** True if the text has the form and the checksum of a key. */
export function isKeyText(text: unknown): text is string {
  if (typeof text !== 'string') return false
  const [, random, checksum] = KEY.exec(text) ?? []
  return random !== undefined && checksumOf(random) === checksum
}

/** The part of a key that may be shown: enough to tell keys apart, too little to use. */
export function shownKeyPrefix(text: string): string {
  return text.slice(0, PREFIX_LENGTH)
}

/** The stored form of a key. A key is long and random, so SHA-256 is enough; a slow hash would only slow down every request. */
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
