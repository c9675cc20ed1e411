import { systemClock } from '@carillon/core'

import { findDataDirectory, openDataDirectory, type DataDirectory } from './data-directory.ts'
import { endPool, openPool, type Pool } from './database.ts'
import { findEmbedded, startEmbedded } from './embedded-postgres.ts'
import { ServiceError } from './service-error.ts'
import type { Settings } from './settings.ts'

interface AccessOptions {
  /** Whether a data directory that is not there yet is made. */
  readonly isMade: boolean
}

/**
 * Lends the database of an installation, whether or not the service runs: DATABASE_URL, or the Postgres that runs on the
 * data directory, or else that one started for as long as it takes.
 */
export async function withDatabase<Result>(
  settings: Settings,
  options: AccessOptions,
  work: (pool: Pool, url: string) => Promise<Result>,
): Promise<Result> {
  const { databaseUrl } = settings
  if (databaseUrl !== null) return withPool(databaseUrl, work)
  const directory = directoryOf(settings, options)
  const running = findEmbedded(directory)
  if (running !== undefined) return withPool(running.url, work)
  await using postgres = await startEmbedded(directory)
  return await withPool(postgres.url, work)
}

function directoryOf({ dataDir }: Settings, { isMade }: AccessOptions): DataDirectory {
  if (isMade) return openDataDirectory(dataDir)
  const directory = findDataDirectory(dataDir)
  if (directory !== undefined) return directory
  throw new ServiceError(
    'data_directory_missing',
    `there is no data directory at ${dataDir}: \`carillon up\` makes one, CARILLON_DATA_DIR names another, and DATABASE_URL a database elsewhere`,
  )
}

async function withPool<Result>(url: string, work: (pool: Pool, url: string) => Promise<Result>): Promise<Result> {
  const pool = await openPool({ url, applicationName: 'carillon command' })
  try {
    return await work(pool, url)
  } finally {
    await endPool(pool, systemClock)
  }
}
