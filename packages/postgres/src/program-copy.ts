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

/** A copy of Postgres that lives as long as its server: made at the start, removed at the stop. */
export interface CopiedProgram {
  readonly folder: string
  /** Why it does not run where npm installed it, as half a sentence. */
  readonly reason: string
  remove(): void
}

interface CopyOptions {
  readonly installed: string
  readonly version: string
  /** Claimed by this process, so nothing else copies for it. */
  readonly dataDir: string
  readonly user: ServerUser
  readonly reason: string
}

/** Root's place for what programs keep. Other copies of Carillon have theirs beside it. */
const SYSTEM_FOLDER = '/var/lib/carillon-postgres'
const TEMPORARY_PREFIX = 'carillon-postgres-'
/** In each copy, written last: of which version it is. Without it a copy is not whole. */
const VERSION_FILE = 'version'
/** In each copy outside of its data directory: to which one it belongs. */
const BELONGS_FILE = 'data-directory'

/**
 * Copies Postgres to where the server's user can run it: into the data directory, or outside of it if that is another user's.
 * After a kill the next start finds the copy and uses it again.
 */
export function copyProgram({ installed, version, dataDir, user, reason }: CopyOptions): CopiedProgram {
  removeAbandoned()
  const causes: unknown[] = []
  for (const folder of foldersFor(dataDir, user)) {
    try {
      if (!isWhole(folder, version)) makeCopy({ installed, version, folder, dataDir })
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

/** A copy that cannot be removed harms nothing: the next start uses it again. */
function removeFolder(folder: string): void {
  try {
    // First, so that a copy that is only half removed is not taken for a whole one.
    rmSync(join(folder, VERSION_FILE), { force: true })
    rmSync(folder, { recursive: true, force: true })
    if (dirname(folder) === SYSTEM_FOLDER && readdirSync(SYSTEM_FOLDER).length === 0) rmdirSync(SYSTEM_FOLDER)
  } catch {
    // Left for the next start.
  }
}

function foldersFor(dataDir: string, user: ServerUser): string[] {
  const id = createHash('sha256').update(dataDir).digest('hex').slice(0, 16)
  // Not as root in a folder of the server's user, who could put links in the way of what root writes.
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
  // Whatever the umask takes away.
  if (makeDirectory(dirname(folder), 0o755)) chmodSync(dirname(folder), 0o755)
  mkdirSync(folder, 0o755)
  writeFileSync(join(folder, BELONGS_FILE), dataDir)
  cpSync(join(installed, 'native'), join(folder, 'native'), { recursive: true, verbatimSymlinks: true })
  completeProgram(folder)
  openForReading(folder)
  writeFileSync(join(folder, VERSION_FILE), version)
}

function isWhole(folder: string, version: string): boolean {
  requireOwn(folder)
  const file = join(folder, VERSION_FILE)
  return existsSync(file) && readFileSync(file, 'utf8') === version
}

/** In a folder that everybody may write to, another user could have laid a program under our name. */
function requireOwn(folder: string): void {
  try {
    const stat = lstatSync(folder)
    if (stat.isDirectory() && stat.uid === (process.geteuid?.() ?? stat.uid)) return
  } catch (error) {
    if (systemCodeOf(error) === 'ENOENT') return
    throw error
  }
  throw new Error(`${folder} belongs to another user`)
}

/** What was installed under a strict umask is closed to the server's user; the copy is ours to open. */
function openForReading(folder: string): void {
  chmodSync(folder, 0o755)
  for (const entry of readdirSync(folder, { recursive: true, withFileTypes: true })) {
    if (entry.isSymbolicLink()) continue
    const path = join(entry.parentPath, entry.name)
    const isExecutable = entry.isDirectory() || (lstatSync(path).mode & 0o100) !== 0
    chmodSync(path, isExecutable ? 0o755 : 0o644)
  }
}

/** Copies whose data directory is gone: their server was killed, and then somebody removed the data. */
function removeAbandoned(): void {
  for (const folder of copiesOutside()) {
    try {
      if (!existsSync(readFileSync(join(folder, BELONGS_FILE), 'utf8'))) removeFolder(folder)
    } catch {
      // Another process removes or makes it at this moment, or it is another user's.
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
