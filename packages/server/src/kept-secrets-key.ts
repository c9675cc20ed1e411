import { randomBytes } from 'node:crypto'
import { existsSync } from 'node:fs'

import { describeDataDirectory, openDataDirectory, type DataDirectory } from './data-directory.ts'
import { keptKey } from './kept-key.ts'
import { readSecretsKey, SECRETS_KEY_BYTES } from './secrets-key-settings.ts'
import type { Settings } from './settings.ts'

/**
 * What secrets are encrypted with: the first key encrypts, all of them open. On a Postgres of our own one is made and kept
 * beside it; elsewhere every server and worker has to be given the same, so null if none was.
 */
export function openSecretsKeys({ secretsKeys, databaseUrl, dataDir }: Settings): readonly Buffer[] | null {
  if (secretsKeys !== null) return secretsKeys
  return databaseUrl === null ? [keyIn(openDataDirectory(dataDir))] : null
}

/** The same for who only looks: none is made, so null also beside a Postgres of our own that has none. */
export function findSecretsKeys({ secretsKeys, databaseUrl, dataDir }: Settings): readonly Buffer[] | null {
  if (secretsKeys !== null || databaseUrl !== null) return secretsKeys
  const directory = describeDataDirectory(dataDir)
  return existsSync(directory.secretsKeyFile) ? [keyIn(directory)] : null
}

function keyIn(directory: DataDirectory): Buffer {
  const text = keptKey(directory, {
    file: directory.secretsKeyFile,
    make: () => randomBytes(SECRETS_KEY_BYTES).toString('base64'),
    isSound: (kept) => readSecretsKey(kept) !== undefined,
    // Never deleted lightly: what it encrypted opens with no other.
    fault: 'holds no key of 32 bytes in base64: restore it from a backup, or set CARILLON_SECRETS_KEY',
  })
  return Buffer.from(text, 'base64')
}
