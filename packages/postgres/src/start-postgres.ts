import { existsSync } from 'node:fs'
import { resolve } from 'node:path'

import { ensureDatabase, openDataDirectory, readPassword, prepareRestart } from './data-directory.ts'
import { openProgram, type PostgresBinaries } from './program.ts'
import { superuserUrl } from './server-address.ts'
import type { ServerProcess } from './server-process.ts'
import { chooseServerUser } from './server-user.ts'
import { startServer } from './start-server.ts'
import { supervise, type RestartListener } from './supervisor.ts'

export interface PostgresOptions {
  /** The folder of the database, created if missing. The data survives stops, crashes and restarts. */
  readonly dataDir: string
  /** @default a free port */
  readonly port?: number
  /** Settings as in `postgresql.conf`: `{ max_connections: '200' }`. Addresses and logging cannot be changed. */
  readonly settings?: Readonly<Record<string, string>>
  /**
   * If given, a server that ends unexpectedly is restarted on the same data and port until `stop`, and the listener is
   * called for each step. @default no restarts
   */
  readonly restarts?: RestartListener
}

/**
 * A Postgres that listens on loopback. `stop` waits until it has ended. If this process ends without that, a watchdog stops Postgres a
 * moment later.
 */
export interface EmbeddedPostgres extends AsyncDisposable {
  /** Connects as the superuser, with its password, to the database `postgres`. */
  readonly url: string
  readonly port: number
  /** The folder of the copy that runs, and why; null if Postgres runs from where npm installed it. */
  readonly copiedProgram: { readonly folder: string; readonly reason: string } | null
  /** Resolves once the server has ended and will not be restarted. */
  readonly ended: Promise<void>
  /** Ends all sessions and the server, also during a restart. Safe to call twice. */
  stop(): Promise<void>
}

/** Starts the Postgres that npm installed on the data in a folder. Throws `PostgresError`. */
export async function startPostgres(options: PostgresOptions): Promise<EmbeddedPostgres> {
  const { settings = {}, restarts: listener } = options
  const given = resolve(options.dataDir)
  const directory = await openDataDirectory(given, chooseServerUser(given))
  const { path, user } = directory
  const stopping = new AbortController()
  const { signal } = stopping
  let program: PostgresBinaries | undefined
  // Removes the copy first: once the directory is released, another process may use the same copy.
  const release = (): void => {
    program?.copy?.remove()
    directory.release()
  }
  try {
    program = openProgram(path, user)
    await ensureDatabase(directory, program, settings['fsync'] !== 'off')
    const { server, port } = await startServer({ ...options, settings, directory, postgres: program.postgres, signal })
    const restart = async (): Promise<ServerProcess> => {
      await prepareRestart(directory)
      // The copy may have been removed, or npm may have reinstalled the program.
      if (program === undefined || !existsSync(program.postgres)) program = openProgram(path, user)
      return (await startServer({ settings, directory, postgres: program.postgres, port, signal })).server
    }
    const ended = (listener ? supervise({ server, signal, restart, listener }) : server.ended).then(release)
    // Keeps a rejection from counting as unhandled. The callers of `stop` and `ended` get the error.
    ended.catch(() => undefined)
    const stop = (): Promise<void> => {
      stopping.abort()
      return ended
    }
    return {
      url: superuserUrl(port, readPassword(path)),
      port,
      copiedProgram: program.copy && { folder: program.copy.folder, reason: program.copy.reason },
      ended,
      stop,
      [Symbol.asyncDispose]: stop,
    }
  } catch (error) {
    release()
    throw error
  }
}
