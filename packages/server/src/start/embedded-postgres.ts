import { randomBytes } from 'node:crypto'

import { renewLogins } from '@carillon/core'
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
import { withDatabaseErrors, type Pool } from './database.ts'
import { OperatorError, type OperatorErrorCode } from './operator-error.ts'

/** The database URLs that the API and the worker connect with. */
export interface DatabaseUrls {
  readonly api: string
  readonly worker: string
}

const PASSWORD_BYTES = 24

const CODES: Readonly<Record<PostgresErrorCode, OperatorErrorCode>> = {
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

/**
 * Starts the Postgres of a data directory.
 * @param restarts receives each restart. Without it, a Postgres that stops unexpectedly is not started again
 */
export async function startEmbedded(directory: DataDirectory, restarts?: RestartListener): Promise<EmbeddedPostgres> {
  try {
    return await startPostgres({ dataDir: directory.postgresDir, ...(restarts && { restarts }) })
  } catch (error) {
    throw asOperatorError(error, directory)
  }
}

/** The Postgres of a data directory, if another process has started it. */
export function findEmbedded(directory: DataDirectory): RunningPostgres | undefined {
  try {
    return findRunningPostgres(directory.postgresDir)
  } catch (error) {
    throw asOperatorError(error, directory)
  }
}

/** The process id of the Carillon that uses a data directory; undefined if there is none or it cannot be determined. */
export function findCarillonOn({ postgresDir }: DataDirectory): number | undefined {
  try {
    return findClaimant(postgresDir)
  } catch {
    return undefined
  }
}

/** Gives the API and the worker each a login that owns nothing, with a new password. On any other Postgres the operator does this. */
export async function embeddedUrls(owner: Pool, url: string): Promise<DatabaseUrls> {
  const logins = await withDatabaseErrors(url, () =>
    renewLogins(owner, () => randomBytes(PASSWORD_BYTES).toString('base64url'), owner.schema),
  )
  const urlFor = ({ user, password }: { readonly user: string; readonly password: string }): string => {
    const address = new URL(url)
    address.username = user
    address.password = password
    return address.href
  }
  return { api: urlFor(logins.api), worker: urlFor(logins.worker) }
}

function asOperatorError(error: unknown, directory: DataDirectory): unknown {
  if (!(error instanceof PostgresError)) return error
  const pid = error.code === 'directory_in_use' ? findCarillonOn(directory) : undefined
  const message =
    pid === undefined
      ? error.message
      : `a Carillon (process ${pid}) already runs on the data directory ${directory.path}: ` +
        'use that one, stop it, or choose another directory with CARILLON_DATA_DIR'
  return new OperatorError(CODES[error.code], message, { cause: error })
}
