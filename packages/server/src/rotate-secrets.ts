import { createDb, SecretRotation, systemClock, type RotatedSecrets } from '@carillon/core'

import { withDatabase } from './database-access.ts'
import { endPool, openPool, speakingOf } from './database.ts'
import { openSecretsKeys } from './kept-secrets-key.ts'
import { ServiceError } from './service-error.ts'
import type { Settings } from './settings.ts'

/**
 * Encrypts every secret of an installation with the first of its keys, whatever key it was encrypted with. While everything
 * runs; once more after it was broken off.
 * @throws ServiceError if there is no key
 */
export async function rotateSecrets(settings: Settings): Promise<RotatedSecrets> {
  return withDatabase(settings, { isMade: false }, async (_owner, url) => {
    const keys = openSecretsKeys(settings)
    if (keys === null) {
      throw new ServiceError(
        'settings_invalid',
        'CARILLON_SECRETS_KEY: expected the new key and those before it, got none',
      )
    }
    const pool = await openPool({ url, applicationName: 'carillon secrets', role: 'carillon_worker' })
    try {
      return await speakingOf(url, () => new SecretRotation({ db: createDb(pool), keys }).reencryptAll())
    } finally {
      await endPool(pool, systemClock)
    }
  })
}
