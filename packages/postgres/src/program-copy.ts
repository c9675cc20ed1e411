import { createHash } from 'node:crypto'
import {
  chmodSync,
  cpSync,
  existsSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmdirSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'

import { PROGRAM_FOLDER } from './directory-claim.ts'
import { makeDirectory } from './make-directory.ts'
import { PostgresError, systemCodeOf } from './postgres-error.ts'
import { completeProgram, isRunnable } from './program-folder.ts'
import type { ServerUser } from './server-user.ts'

/** A copy of the Postgres program, created when its server starts and removed when the server stops. */
export interface CopiedProgram {
  readonly folder: string
  /** Why Postgres does not run where npm installed it, as a clause for a message. */
  readonly reason: string
  remove(): void
}

interface CopyOptions {
  readonly installed: string
  readonly version: string
  /** This process has claimed the data directory, so no other process makes a copy for it. */
  readonly dataDir: string
  readonly user: ServerUser
  readonly reason: string
}

/** Holds the copies that root makes, one folder per data directory. */
const SYSTEM_FOLDER = '/var/lib/carillon-postgres'
const TEMPORARY_PREFIX = 'carillon-postgres-'
/** The file in each copy that holds its version. It is written last, so a copy without it is incomplete. */
const VERSION_FILE = 'version'
/** The file in each copy that holds the path of the data directory it belongs to. */
const DATA_DIRECTORY_FILE = 'data-directory'

/**
 * Copies Postgres to a folder from which the server's user can run it. That is a folder inside the data directory if this
 * process's own user runs the server, or else one outside. After a kill the next start finds the copy and uses it again.
 */
export function copyProgram({ installed, version, dataDir, user, reason }: CopyOptions): CopiedProgram {
  removeAbandoned()
  const causes: unknown[] = []
  for (const folder of foldersFor(dataDir, user)) {
    try {
      if (!isComplete(folder, version)) makeCopy({ installed, version, folder, dataDir })
      if (isRunnable(folder, user)) return { folder, reason, remove: () => removeFolder(folder) }
      removeFolder(folder)
    } catch (error) {
      causes.push(error)
    }
  }
  throw new PostgresError(
    'path_blocked',
    `Postgres cannot run where npm installed it (${reason}), and a copy of it runs neither in ${dataDir} nor in ` +
      `${SYSTEM_FOLDER} nor in ${tmpdir()}: set TMPDIR to a folder that programs may run from`,
    { cause: new AggregateError(causes) },
  )
}

/** Removes a copy. A copy that cannot be removed does no harm: the next start uses it again. */
function removeFolder(folder: string): void {
  try {
    // Removes this file first, so that a partly removed copy is not mistaken for a complete one.
    rmSync(join(folder, VERSION_FILE), { force: true })
    rmSync(folder, { recursive: true, force: true })
    if (dirname(folder) === SYSTEM_FOLDER && readdirSync(SYSTEM_FOLDER).length === 0) rmdirSync(SYSTEM_FOLDER)
  } catch {
    // The next start uses or removes it.
  }
}

function foldersFor(dataDir: string, user: ServerUser): string[] {
  const id = createHash('sha256').update(dataDir).digest('hex').slice(0, 16)
  // Root must not write to a folder of the server's user, who could place links there.
  const inside = user ? [] : [join(dataDir, PROGRAM_FOLDER)]
  return [...inside, join(SYSTEM_FOLDER, id), join(tmpdir(), `${TEMPORARY_PREFIX}${id}`)]
}

function makeCopy({
  installed,
  version,
  folder,
  dataDir,
}: Omit<CopyOptions, 'user' | 'reason'> & { folder: string }): void {
  requireOwn(folder)
  rmSync(folder, { recursive: true, force: true })
  // The umask may have removed permissions.
  if (makeDirectory(dirname(folder), 0o755)) chmodSync(dirname(folder), 0o755)
  mkdirSync(folder, 0o755)
  writeFileSync(join(folder, DATA_DIRECTORY_FILE), dataDir)
  cpSync(join(installed, 'native'), join(folder, 'native'), { recursive: true, verbatimSymlinks: true })
  completeProgram(folder)
  openForReading(folder)
  writeFileSync(join(folder, VERSION_FILE), version)
}

function isComplete(folder: string, version: string): boolean {
  requireOwn(folder)
  const file = join(folder, VERSION_FILE)
  return existsSync(file) && readFileSync(file, 'utf8') === version
}

/** In a folder that all users may write to, another user could have placed a program under this name. */
function requireOwn(folder: string): void {
  try {
    const stat = lstatSync(folder)
    if (stat.isDirectory() && stat.uid === (process.geteuid?.() ?? stat.uid)) return
  } catch (error) {
    if (systemCodeOf(error) === 'ENOENT') return
    throw error
  }
  throw new Error(`expected a folder of this user, got ${folder} of another user`)
}

/** Makes a copy readable for the server's user. A strict umask during installation may have closed the original. */
function openForReading(folder: string): void {
  chmodSync(folder, 0o755)
  for (const entry of readdirSync(folder, { recursive: true, withFileTypes: true })) {
    if (entry.isSymbolicLink()) continue
    const path = join(entry.parentPath, entry.name)
    const isExecutable = entry.isDirectory() || (lstatSync(path).mode & 0o100) !== 0
    chmodSync(path, isExecutable ? 0o755 : 0o644)
  }
}

/** Removes copies whose data directory is gone: their server was killed, and the data was removed later. */
function removeAbandoned(): void {
  for (const folder of copiesOutside()) {
    try {
      if (!existsSync(readFileSync(join(folder, DATA_DIRECTORY_FILE), 'utf8'))) removeFolder(folder)
    } catch {
      // Another process is creating or removing the copy, or another user owns it.
    }
  }
}

function copiesOutside(): string[] {
  return [SYSTEM_FOLDER, tmpdir()].flatMap((parent) => {
    try {
      const names = readdirSync(parent).filter((name) => parent === SYSTEM_FOLDER || name.startsWith(TEMPORARY_PREFIX))
      return names.map((name) => join(parent, name))
    } catch {
      return []
    }
  })
}
