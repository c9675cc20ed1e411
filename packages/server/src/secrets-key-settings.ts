import { listOf, variableText, type Environment } from './environment.ts'
import { ServiceError } from './service-error.ts'

export const SECRETS_KEY_BYTES = 32

const EXPECTED = `keys of ${SECRETS_KEY_BYTES} bytes each in base64, with commas between`

/**
 * Null: none are named.
 * @throws ServiceError `settings_invalid`; it never tells a key
 */
export function readSecretsKeys(env: Environment, variable: string): readonly Buffer[] | null {
  const text = variableText(env, variable)
  if (text === undefined) return null
  const texts = listOf(text) ?? []
  const keys = texts.map(readSecretsKey).filter((key) => key !== undefined)
  if (texts.length > 0 && keys.length === texts.length) return keys
  throw new ServiceError('settings_invalid', `${variable}: expected ${EXPECTED}, got something else`)
}

/** Undefined for anything but 32 bytes in base64, of either alphabet. */
export function readSecretsKey(text: string): Buffer | undefined {
  if (!/^[\w+/-]+={0,2}$/.test(text)) return undefined
  const key = Buffer.from(text, 'base64')
  return key.length === SECRETS_KEY_BYTES ? key : undefined
}
