import { resolve } from 'node:path'

import { readPassword } from './data-directory.ts'
import { LOOPBACK } from './free-port.ts'
import { PostgresError, systemCodeOf } from './postgres-error.ts'
import { findPostmasterPort } from './postmaster-lock.ts'

/** A Postgres that another process started. It stops when that one wants it to. */
export interface RunningPostgres {
  /** Of the superuser, with the password, to the database `postgres`. */
  readonly url: string
  readonly port: number
}

/**
 * The Postgres that serves the data in a folder at this moment; undefined if none does, or it is on its way out. One that
 * has only just started may not take connections yet. Throws `PostgresError` if this user may not look.
 */
export function findRunningPostgres(dataDir: string): RunningPostgres | undefined {
  const path = resolve(dataDir)
  try {
    const port = findPostmasterPort(path)
    return port === undefined ? undefined : { port, url: superuserUrl(port, readPassword(path)) }
  } catch (error) {
    const code = systemCodeOf(error)
    if (code === undefined) throw error
    throw new PostgresError('directory_unwritable', `the data directory ${path} cannot be read (${code})`, {
      cause: error,
    })
  }
}

export function superuserUrl(port: number, password: string | undefined): string {
  const credentials = password === undefined ? 'postgres' : `postgres:${password}`
  return `postgres://${credentials}@${LOOPBACK}:${port}/postgres`
}
