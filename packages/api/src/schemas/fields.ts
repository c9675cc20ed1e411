import { z } from 'zod'

import { component } from '../component.ts'
import { expected } from '../expected.ts'
import { IDEMPOTENCY_KEY_MAX_LENGTH, LAST_INSTANT_MS, SUBJECT_NAME_MAX_LENGTH } from '../limits.ts'
import { INSTALLATION_SUBJECT, ROLES } from '../words.ts'

/* Fields that several schemas have. What `refine` checks is enforced, but is not in the documented JSON Schema. */

/** An instant in an answer: in UTC, to the millisecond. */
export const instant = z.iso.datetime({ precision: 3 }).meta({ description: 'UTC, to the millisecond.' })

const INSTANT = expected('an instant from 1970 to 9999 such as 2026-12-24T18:00:00Z')

/** An instant in a request: with any offset from UTC. */
export const instantInput = z.iso.datetime({ offset: true, ...INSTANT }).refine((text) => {
  const epochMs = Date.parse(text)
  return epochMs >= 0 && epochMs <= LAST_INSTANT_MS
}, INSTANT)

/** Not `z.json()`: its JSON schema refers to itself, which many client generators cannot read. */
export const json = component('Json', z.unknown(), 'Any JSON value.')

/** JSON with sorted fields: equal values have equal text. */
export function canonicalJson(value: unknown): string {
  return JSON.stringify(value, (_key, part: unknown) =>
    typeof part === 'object' && part !== null && !Array.isArray(part)
      ? Object.fromEntries(Object.entries(part).toSorted(([a], [b]) => (a < b ? -1 : 1)))
      : part,
  )
}

/** A whole number within a range. `alternative` ends the one message about any other value, such as `, or null`. */
export function wholeNumber({ min, max }: { readonly min: number; readonly max: number }, alternative = '') {
  const range = expected(`a whole number from ${min} to ${max}${alternative}`)
  return z.int(range).min(min, range).max(max, range)
}

const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i

/** True if Postgres accepts the value as an id. */
export function isUuid(value: unknown): boolean {
  return typeof value === 'string' && UUID.test(value)
}

/** Whether Postgres can store a text and return it unchanged. */
export function isStorable(text: string): boolean {
  return !text.includes('\0') && text.isWellFormed()
}

/** A text of 1 to `maxLength` characters that Postgres can store. */
export function storableText(maxLength: number) {
  const shape = expected(`a text of 1 to ${maxLength} characters, none of them U+0000`)
  return z.string(shape).refine((text) => text !== '' && text.length <= maxLength && isStorable(text), shape)
}

/**
 * The name of a tenant, a project or a secret. It begins with a letter or digit, so no caller can use `_platform`. The database refuses
 * that name as well: it is reserved for rows of the installation itself, and no release has written one yet.
 */
export const NAME_PATTERN = /^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$/

export const NAME_SHAPE = '1 to 100 letters, digits, dots, dashes or underscores that begin with a letter or digit'

/** The id of a tenant or a project. */
export const scopeName = z.string(expected(NAME_SHAPE)).refine((name) => NAME_PATTERN.test(name), expected(NAME_SHAPE))

const SUBJECT = new RegExp(String.raw`^[a-z_]+:[^\s]{1,${SUBJECT_NAME_MAX_LENGTH}}$`)

/** Whether a text is a typed subject that a caller may name: not the installation, and not a part of Carillon. */
export function isNameableSubject(text: string): boolean {
  return SUBJECT.test(text) && isStorable(text) && text !== INSTALLATION_SUBJECT && !text.startsWith('system:')
}

const SUBJECT_SHAPE = 'a typed subject such as user:alice'

/** A user or a service by type and name. */
export const typedSubject = z.string(expected(SUBJECT_SHAPE)).refine(isNameableSubject, expected(SUBJECT_SHAPE))

const KEY_SHAPE = `1 to ${IDEMPOTENCY_KEY_MAX_LENGTH} printable ASCII characters that neither begin nor end with a space`
const KEY_PATTERN = new RegExp(
  String.raw`^[\x21-\x7e](?:[\x20-\x7e]{0,${IDEMPOTENCY_KEY_MAX_LENGTH - 2}}[\x21-\x7e])?$`,
)

/** The key of a request that a client may send again. HTTP drops spaces around a header, so a key has none there. */
export const idempotencyKey = z.string(expected(KEY_SHAPE)).regex(KEY_PATTERN, expected(KEY_SHAPE))

export const role = z.enum(ROLES, expected(`one of ${ROLES.join(', ')}`))
