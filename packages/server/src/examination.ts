import { Doctor, type Check } from '@carillon/core'

import { withDatabase } from './database-access.ts'
import { ServiceError } from './service-error.ts'
import type { Settings } from './settings.ts'

/** Looks at an installation and says what is wrong and what to do. Changes nothing. What cannot be reached has failed. */
export async function examine(settings: Settings): Promise<Check[]> {
  try {
    return await withDatabase(settings, { isMade: false }, (pool) => new Doctor({ pool }).examine())
  } catch (error) {
    if (!(error instanceof ServiceError)) throw error
    return [{ name: 'database', status: 'failed', message: error.message }]
  }
}
