import { existsSync } from 'node:fs'
import { resolve } from 'node:path'

import { ensureDatabase, openDataDirectory, readPassword, requireDatabase } from './data-directory.ts'
import { openProgram, type Program } from './program.ts'
import { superuserUrl } from './running-postgres.ts'
import type { ServerProcess } from './server-process.ts'
import { chooseServerUser } from './server-user.ts'
import { startServer } from './start-server.ts'
import { supervise, type RestartListener } from './supervisor.ts'

export interface PostgresOptions {
  /** Made if it is not there. The data in it survives stops, crashes and restarts. */
  readonly dataDir: string
  /** @default a free one */
  readonly port?: number
  /** Settings as in `postgresql.conf`: `{ max_connections: '200' }`. Where it listens and logs is not theirs to say. */
  readonly settings?: Readonly<Record<string, string>>
  /**
   * If given, a server that ends without being asked to is started again on the same data and port, until `stop`, and the
   * listener hears of it. @default it is not started again
   */
  readonly restarts?: RestartListener
}

/** A Postgres of our own, on loopback. Stop it before the process ends; should the process crash, it stops by itself. */
export interface EmbeddedPostgres extends AsyncDisposable {
  /** Of the superuser, with the password, to the database `postgres`. */
  readonly url: string
  readonly port: number
  /** The folder of the copy that runs, and why a copy runs; null if Postgres runs where npm installed it. */
  readonly copiedProgram: { readonly folder: string; readonly reason: string } | null
  /** Fulfilled once the server has ended for good: because of `stop`, or by itself if it is not started again. */
  readonly ended: Promise<void>
  /** Ends all sessions and the server, also in the middle of a restart. Safe to call twice. */
  stop(): Promise<void>
}

/** Starts the Postgres that npm installed on the data in a folder; throws `PostgresError`. */
export async function startPostgres(options: PostgresOptions): Promise<EmbeddedPostgres> {
  const { settings = {}, restarts: listener } = options
  const given = resolve(options.dataDir)
  const directory = await openDataDirectory(given, chooseServerUser(given))
  const { path, user } = directory
  const stopping = new AbortController()
  const { signal } = stopping
  let program: Program | undefined
  // In this order: a copy of the program is used by no other process until the directory is released.
  const release = (): void => {
    program?.copy?.remove()
    directory.release()
  }
  try {
    program = openProgram(path, user)
    await ensureDatabase(directory, program, settings['fsync'] !== 'off')
    const { server, port } = await startServer({ ...options, settings, directory, postgres: program.postgres, signal })
    const restart = async (): Promise<ServerProcess> => {
      await requireDatabase(directory)
      // Somebody may have removed the copy, or installed anew.
      if (program === undefined || !existsSync(program.postgres)) program = openProgram(path, user)
      return (await startServer({ settings, directory, postgres: program.postgres, port, signal })).server
    }
    const ended = (listener ? supervise({ server, signal, restart, listener }) : server.ended).then(release)
    // Whoever calls `stop` hears why the directory was not released.
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
