import { randomBytes } from 'node:crypto'

import type { Caller } from '../caller.ts'
import { systemClock, type Clock } from '../clock.ts'
import { CarillonError, invalidInput } from '../errors.ts'
import { placeOf } from '../place.ts'
import { foundText } from '../policy/found-text.ts'
import type { Problem } from '../problem.ts'
import { NONCE_BYTES, SecretCipher, secretsUnavailable } from '../secret-cipher.ts'
import type { Db } from '../store/database.ts'
import {
  deleteSecret,
  findKeptSecret,
  listSecrets,
  lockSecretName,
  saveSecret,
  type SecretRecord,
} from '../store/secrets.ts'
import { transactWithin } from '../store/walled-transaction.ts'
import { checkedNamePage, type NamePageOptions } from './name-page.ts'
import { isStorable } from './stored-text.ts'

export interface SecretsDeps {
  readonly db: Db
  readonly clock?: Clock
  /** Of 32 bytes each. The first encrypts; the others open what was encrypted before. Null: no secret can be put. */
  readonly keys: readonly Buffer[] | null
}

const NAME = /^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$/
const VALUE_MAX_LENGTH = 8192
const CONTROL_CHARACTER = /\p{Cc}/u

/**
 * Secrets that schedules refer to by name (I8). A value goes in and is never told again; a target gets it through the
 * `SecretStore` of its worker.
 *
 * Each value is encrypted for its tenant, project, name and version: in the place of another it does not open. Somebody who
 * can write to the database may still put back a whole row of before, which nothing in the database could tell.
 *
 * Throws CarillonError with a closed `code`, and no message that holds a value; whatever throws has written nothing.
 */
export class Secrets {
  readonly #db: Db
  readonly #clock: Clock
  readonly #cipher: SecretCipher | null

  /** @throws CarillonError `invalid_input` for a key that has not 32 bytes */
  constructor(deps: SecretsDeps) {
    this.#db = deps.db
    this.#clock = deps.clock ?? systemClock
    this.#cipher = deps.keys === null ? null : new SecretCipher(deps.keys)
  }

  /** Keeps a value, in the place of the one before. Attempts use it from the next one on. */
  async put(caller: Caller, name: string, value: string): Promise<SecretRecord> {
    const problems = [...nameProblems(name), ...valueProblems(value)]
    if (problems.length > 0) throw invalidInput(problems)
    const cipher = this.#cipher
    if (cipher === null) throw secretsUnavailable()
    const [place, now] = [placeOf(caller), this.#clock.databaseNow()]
    const secret = { ...place, name }
    return transactWithin(this.#db, this.#clock, place, async (tx) => {
      // A statement of its own: what another put committed while this one waited is seen by the next.
      await lockSecretName(tx, secret)
      const version = ((await findKeptSecret(tx, secret))?.version ?? 0) + 1
      const sealed = cipher.seal({ ...secret, version }, value, randomBytes(NONCE_BYTES))
      return saveSecret(tx, { ...secret, ...sealed, version, actor: caller.subject, now })
    })
  }

  /** Those of the caller's project, by name. */
  async list(caller: Caller, options: NamePageOptions = {}): Promise<SecretRecord[]> {
    const [place, page] = [placeOf(caller), checkedNamePage(options)]
    return transactWithin(this.#db, this.#clock, place, (tx) => listSecrets(tx, { ...place, ...page }))
  }

  /** For good. Attempts of schedules that still refer to it fail. */
  async delete(caller: Caller, name: string): Promise<SecretRecord> {
    const place = placeOf(caller)
    if (nameProblems(name).length > 0) throw secretNotFound(name)
    const deleted = await transactWithin(this.#db, this.#clock, place, (tx) => deleteSecret(tx, { ...place, name }))
    if (deleted === undefined) throw secretNotFound(name)
    return deleted
  }
}

/** Does not show what it got: somebody may have taken the one for the other. */
function nameProblems(name: unknown): Problem[] {
  if (typeof name === 'string' && NAME.test(name)) return []
  const message =
    'expected 1 to 100 letters, digits, dots, dashes or underscores that begin with a letter or digit, got ' +
    (typeof name === 'string' ? 'another text' : foundText(name))
  return [{ path: 'name', message }]
}

function valueProblems(value: unknown): Problem[] {
  const fault = valueFault(value)
  if (fault === null) return []
  const message = `expected a text of 1 to ${VALUE_MAX_LENGTH} characters, none of them a control character, got ${fault}`
  return [{ path: 'value', message }]
}

function valueFault(value: unknown): string | null {
  if (typeof value !== 'string') return value === undefined ? 'nothing' : `a value of type ${typeof value}`
  if (value === '') return 'an empty one'
  if (value.length > VALUE_MAX_LENGTH) return 'a longer one'
  if (CONTROL_CHARACTER.test(value)) return 'one with a control character'
  return isStorable(value) ? null : 'one with half a character'
}

function secretNotFound(name: unknown): CarillonError {
  return new CarillonError('secret_not_found', `expected the name of a secret of this project, got ${foundText(name)}`)
}
