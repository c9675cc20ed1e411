import { once } from 'node:events'
import { createServer, type AddressInfo } from 'node:net'
import { resolve } from 'node:path'

import { readPassword } from './data-directory.ts'
import { PostgresError, systemCodeOf } from './postgres-error.ts'
import { findPostmasterPort } from './postmaster-lock.ts'

/** The only address that Postgres listens on, so other machines cannot reach it. */
export const LOOPBACK = '127.0.0.1'

/** A Postgres that another process started and will stop. */
export interface RunningPostgres {
  /** The URL of the database `postgres`, with the superuser's name and password. */
  readonly url: string
  readonly port: number
}

/**
 * Finds the Postgres that serves a data directory now; undefined if there is none, or if it is stopping. A Postgres that
 * has just started may not accept connections yet. Throws `PostgresError` if this user may not read the directory.
 */
export function findRunningPostgres(dataDir: string): RunningPostgres | undefined {
  const path = resolve(dataDir)
  try {
    const port = findPostmasterPort(path)
    return port === undefined ? undefined : { port, url: superuserUrl(port, readPassword(path)) }
  } catch (error) {
    const code = systemCodeOf(error)
    if (code === undefined) throw error
    throw new PostgresError(
      'directory_unwritable',
      `expected a data directory that this user may read at ${path}, got the error ${code}`,
      {
        cause: error,
      },
    )
  }
}

export function superuserUrl(port: number, password: string | undefined): string {
  const credentials = password === undefined ? 'postgres' : `postgres:${password}`
  return `postgres://${credentials}@${LOOPBACK}:${port}/postgres`
}

/** Finds a free port. Another process may open it before the caller does, so the caller must be ready to try again. */
export async function findFreePort(): Promise<number> {
  const probe = createServer().listen(0, LOOPBACK)
  await once(probe, 'listening')
  // A TCP server that is listening has an AddressInfo; only pipes and closed servers do not.
  const { port } = probe.address() as AddressInfo
  probe.close()
  await once(probe, 'close')
  return port
}
