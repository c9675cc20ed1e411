import { randomBytes } from 'node:crypto'
import { existsSync, readFileSync } from 'node:fs'

import { createFile, describeDataDirectory, openDataDirectory, unusable, type DataDirectory } from './data-directory.ts'
import { codeOf, OperatorError } from './operator-error.ts'
import { ADMIN_KEY_MIN_LENGTH, isAdminKey, parseSecretsKey, SECRETS_KEY_BYTES, type Settings } from './settings.ts'

interface KeyFile {
  readonly file: string
  readonly createKey: () => string
  readonly isValid: (text: string) => boolean
  /** Completes "expected …" in an error. */
  readonly expected: string
  /** What the operator can do if the file holds anything else. */
  readonly remedy: string
}

/** Returns the admin key. Opens or creates the data directory only if the settings name no key; otherwise `dataDir` is null. */
export function openAdminKey({ adminKey, dataDir }: Settings): {
  readonly adminKey: string
  readonly dataDir: string | null
} {
  if (adminKey !== null) return { adminKey, dataDir: null }
  const directory = openDataDirectory(dataDir)
  return { adminKey: readOrCreateAdminKey(directory), dataDir: directory.path }
}

export function readOrCreateAdminKey(directory: DataDirectory): string {
  return readOrCreateKey(directory, {
    file: directory.adminKeyFile,
    createKey: () => `carillon_admin_${randomBytes(32).toString('base64url')}`,
    isValid: isAdminKey,
    expected: `a key of ${ADMIN_KEY_MIN_LENGTH} characters or more`,
    remedy: 'delete the file to create a new key, or set CARILLON_ADMIN_KEY',
  })
}

/**
 * Returns the keys of secrets: the first encrypts, and each of them can decrypt. Without CARILLON_SECRETS_KEY, a key for the
 * embedded Postgres is created once and kept in the data directory. For any other database the result is then null, because every
 * server and worker needs the same keys.
 */
export function openSecretsKeys({ secretsKeys, databaseUrl, dataDir }: Settings): readonly Buffer[] | null {
  if (secretsKeys !== null) return secretsKeys
  return databaseUrl === null ? [readOrCreateSecretsKey(openDataDirectory(dataDir))] : null
}

/** Like `openSecretsKeys`, but creates nothing: the result is also null if the data directory holds no key. */
export function findSecretsKeys({ secretsKeys, databaseUrl, dataDir }: Settings): readonly Buffer[] | null {
  if (secretsKeys !== null || databaseUrl !== null) return secretsKeys
  const directory = describeDataDirectory(dataDir)
  return existsSync(directory.secretsKeyFile) ? [readOrCreateSecretsKey(directory)] : null
}

function readOrCreateSecretsKey(directory: DataDirectory): Buffer {
  const text = readOrCreateKey(directory, {
    file: directory.secretsKeyFile,
    createKey: () => randomBytes(SECRETS_KEY_BYTES).toString('base64'),
    isValid: (kept) => parseSecretsKey(kept) !== undefined,
    expected: `a key of ${SECRETS_KEY_BYTES} bytes in base64`,
    // Never advise the operator to delete the file: secrets that its key encrypted could not be decrypted any more.
    remedy: 'restore the file from a backup, or set CARILLON_SECRETS_KEY',
  })
  return Buffer.from(text, 'base64')
}

/** Reads the key in a file of the data directory. If the file is missing, creates it, readable by its owner only. */
function readOrCreateKey({ path }: DataDirectory, key: KeyFile): string {
  try {
    const kept = readKey(key)
    if (kept !== undefined) return kept
    const created = key.createKey()
    if (createFile(key.file, { text: `${created}\n`, mode: 0o600 })) return created
    // Another process created the file first, so the key of that process is the one to use.
    return readKey(key) ?? created
  } catch (error) {
    throw unusable(error, path)
  }
}

function readKey({ file, isValid, expected, remedy }: KeyFile): string | undefined {
  const text = readText(file)?.trim()
  if (text === undefined || isValid(text)) return text
  throw new OperatorError('data_directory_unusable', `${file}: expected ${expected}, got something else: ${remedy}`)
}

function readText(file: string): string | undefined {
  try {
    return readFileSync(file, 'utf8')
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return undefined
    throw error
  }
}
