import {
  findClaimant,
  findRunningPostgres,
  PostgresError,
  startPostgres,
  type EmbeddedPostgres,
  type PostgresErrorCode,
  type RestartListener,
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
  database_missing: 'postgres_failed',
  port_in_use: 'postgres_failed',
  start_failed: 'postgres_failed',
}

/** Starts the Postgres of a data directory, and starts it again whenever it ends if `restarts` is there to hear of it. */
export async function startEmbedded(directory: DataDirectory, restarts?: RestartListener): Promise<EmbeddedPostgres> {
  try {
    return await startPostgres({ dataDir: directory.postgresDir, ...(restarts && { restarts }) })
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

/** The process id of the Carillon that runs, or starts, on a data directory; undefined if none does or it cannot be known. */
export function findCarillonOn({ postgresDir }: DataDirectory): number | undefined {
  try {
    return findClaimant(postgresDir)
  } catch {
    return undefined
  }
}

function asServiceError(error: unknown, directory: DataDirectory): unknown {
  if (!(error instanceof PostgresError)) return error
  const pid = error.code === 'directory_in_use' ? findCarillonOn(directory) : undefined
  const message =
    pid === undefined
      ? error.message
      : `a Carillon (process ${pid}) already runs on the data directory ${directory.path}: ` +
        'use that one, stop it, or choose another directory with CARILLON_DATA_DIR'
  return new ServiceError(CODES[error.code], message, { cause: error })
}
