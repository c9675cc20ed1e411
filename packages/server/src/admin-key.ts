import { randomBytes } from 'node:crypto'
import { readFileSync } from 'node:fs'

import { createFile } from './atomic-file.ts'
import { openDataDirectory, unusable, type DataDirectory } from './data-directory.ts'
import { codeOf, ServiceError } from './service-error.ts'
import { isAdminKey, type Settings } from './settings.ts'

/** The key that may do everything. A data directory is opened, or made, only if the settings name none. */
export function openAdminKey({ adminKey, dataDir }: Settings): {
  readonly adminKey: string
  readonly dataDir: string | null
} {
  if (adminKey !== null) return { adminKey, dataDir: null }
  const directory = openDataDirectory(dataDir)
  return { adminKey: keptAdminKey(directory), dataDir: directory.path }
}

/** The admin key that the data directory keeps; made now if it keeps none. */
export function keptAdminKey({ path, adminKeyFile }: DataDirectory): string {
  try {
    const kept = readKey(adminKeyFile)
    if (kept !== undefined) return kept
    const made = `carillon_admin_${randomBytes(32).toString('base64url')}`
    if (createFile(adminKeyFile, { text: `${made}\n`, mode: 0o600 })) return made
    // Another process was first: there is one key, and it is that one's.
    return readKey(adminKeyFile) ?? made
  } catch (error) {
    throw unusable(error, path)
  }
}

function readKey(file: string): string | undefined {
  const text = readText(file)?.trim()
  if (text === undefined || isAdminKey(text)) return text
  throw new ServiceError(
    'data_directory_unusable',
    `${file} holds no key of 24 characters or more: delete it to have another one made, or set CARILLON_ADMIN_KEY`,
  )
}

function readText(file: string): string | undefined {
  try {
    return readFileSync(file, 'utf8')
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return undefined
    throw error
  }
}
