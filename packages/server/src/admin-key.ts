import { randomBytes } from 'node:crypto'

import { openDataDirectory, type DataDirectory } from './data-directory.ts'
import { keptKey } from './kept-key.ts'
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
export function keptAdminKey(directory: DataDirectory): string {
  return keptKey(directory, {
    file: directory.adminKeyFile,
    make: () => `carillon_admin_${randomBytes(32).toString('base64url')}`,
    isSound: isAdminKey,
    fault: 'holds no key of 24 characters or more: delete it to have another one made, or set CARILLON_ADMIN_KEY',
  })
}
