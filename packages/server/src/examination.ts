import { Doctor, type Check } from '@carillon/core'

import { withDatabase } from './database-access.ts'
import type { Pool } from './database.ts'
import { findSecretsKeys } from './kept-secrets-key.ts'
import { ServiceError } from './service-error.ts'
import type { Settings } from './settings.ts'

/** Looks at an installation and says what is wrong and what to do. Changes nothing. What cannot be reached has failed. */
export async function examine(settings: Settings): Promise<Check[]> {
  try {
    return await withDatabase(settings, { isMade: false }, (pool) => examineWithKeys(pool, settings))
  } catch (error) {
    if (!(error instanceof ServiceError)) throw error
    return [{ name: 'database', status: 'failed', message: error.message }]
  }
}

/** A key that cannot be read is a fault of its own, and hides no other. */
async function examineWithKeys(pool: Pool, settings: Settings): Promise<Check[]> {
  let keys: readonly Buffer[] | null
  try {
    keys = findSecretsKeys(settings)
  } catch (error) {
    if (!(error instanceof ServiceError)) throw error
    const fault: Check = { name: 'secrets', status: 'failed', message: error.message }
    return [...(await new Doctor({ pool }).examine()), fault]
  }
  return new Doctor({ pool, keys }).examine()
}
