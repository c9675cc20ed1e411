import {
  findRunningPostgres,
  PostgresError,
  startPostgres,
  type EmbeddedPostgres,
  type PostgresErrorCode,
  type RunningPostgres,
} from '@carillon/postgres'

import type { DataDirectory } from './data-directory.ts'
import { ServiceError, type ServiceErrorCode } from './service-error.ts'

const CODES: Readonly<Record<PostgresErrorCode, ServiceErrorCode>> = {
  binaries_missing: 'postgres_failed',
  user_unnamed: 'postgres_failed',
  path_blocked: 'data_directory_unusable',
  directory_unwritable: 'data_directory_unusable',
  directory_in_use: 'data_directory_in_use',
  directory_foreign: 'data_directory_foreign',
  wrong_version: 'data_directory_outdated',
  port_in_use: 'postgres_failed',
  start_failed: 'postgres_failed',
}

/** Starts the Postgres of a data directory. */
export async function startEmbedded(directory: DataDirectory): Promise<EmbeddedPostgres> {
  try {
    return await startPostgres({ dataDir: directory.postgresDir })
  } catch (error) {
    throw asServiceError(error, directory)
  }
}

/** The Postgres of a data directory that another process started. */
export function findEmbedded(directory: DataDirectory): RunningPostgres | undefined {
  try {
    return findRunningPostgres(directory.postgresDir)
  } catch (error) {
    throw asServiceError(error, directory)
  }
}

function asServiceError(error: unknown, { path }: DataDirectory): unknown {
  if (!(error instanceof PostgresError)) return error
  const message =
    error.code === 'directory_in_use'
      ? `a Carillon already runs on the data directory ${path}: use that one, stop it, or choose another directory with CARILLON_DATA_DIR`
      : error.message
  return new ServiceError(CODES[error.code], message, { cause: error })
}
