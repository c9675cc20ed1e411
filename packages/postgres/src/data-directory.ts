import { randomBytes } from 'node:crypto'
import {
  accessSync,
  chmodSync,
  closeSync,
  constants,
  existsSync,
  fchownSync,
  lchownSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  realpathSync,
  renameSync,
  rmSync,
  statSync,
  writeSync,
} from 'node:fs'
import { join } from 'node:path'

import { claimDirectory, isOwnEntry } from './directory-claim.ts'
import { makeDirectory } from './make-directory.ts'
import { PostgresError, systemCodeOf } from './postgres-error.ts'
import type { PostgresBinaries } from './program.ts'
import { runToEnd } from './server-process.ts'
import { findObstacle, type ServerUser } from './server-user.ts'

/**
 * Prefix of the staging folder, in which initdb creates a new database before its files are moved up. A random suffix follows,
 * because the initdb of a killed process may still write to its own staging folder. Such a folder is left if a creation was
 * interrupted.
 */
const STAGING_PREFIX = '.initialising'
/** A removal retries, because an initdb that is still ending may add files meanwhile. */
const REMOVE_OPTIONS = { recursive: true, force: true, maxRetries: 20, retryDelay: 100 }
/**
 * The file with the superuser's password. It lies in the data directory, which only its owner may read. A database that
 * Carillon did not create has no such file.
 */
const PASSWORD_FILE = 'superuser-password'
/**
 * The path by which a process can open its working directory even if its user may not enter a parent folder: Linux opens the
 * folder directly and does not resolve the full path. The processes that Postgres starts have the same working directory.
 */
const WORKING_FOLDER = '/proc/self/cwd'

/** A data directory that this process has claimed until `release`. */
export interface DataDirectory {
  readonly path: string
  readonly user: ServerUser
  /**
   * A parent folder that `user` may not enter; undefined if there is none. If there is one, Postgres opens its working directory
   * and never resolves the full path.
   */
  readonly obstacle: string | undefined
  /** Claims the folder again if the claim file is gone, for instance because a backup replaced the folder. */
  readonly renewClaim: () => Promise<void>
  readonly release: () => void
}

/**
 * Creates a folder if it is missing, claims it for this process and makes `user` its owner. Throws if it holds files but no
 * database.
 */
export async function openDataDirectory(given: string, user: ServerUser): Promise<DataDirectory> {
  let path = given
  try {
    makeDirectory(path)
    // Resolves links, so ownership and permissions are checked and changed on the real folder.
    path = realpathSync(path)
    accessSync(path, constants.R_OK | constants.W_OK | constants.X_OK)
    const obstacle = findObstacle(path, user)
    if (obstacle !== undefined) requireWorkingFolder(path, obstacle)
    requireDatabaseOrNothing(path)
    let claim = await claimDirectory(path)
    const renewClaim = async (): Promise<void> => {
      if (!claim.isHeld()) claim = await claimDirectory(path)
    }
    try {
      takeOwnership(path, user)
      return { path, user, obstacle, renewClaim, release: () => claim.release() }
    } catch (error) {
      claim.release()
      throw error
    }
  } catch (error) {
    throw describe(error, path)
  }
}

/** Creates a database unless there is one. Without `sync` a power failure may lose the created database. */
export async function ensureDatabase(
  directory: DataDirectory,
  program: PostgresBinaries,
  sync: boolean,
): Promise<void> {
  const { path } = directory
  try {
    if (!hasDatabase(path)) await initialise(directory, program, sync)
    for (const entry of entriesOf(path).filter(isStaging)) rmSync(join(path, entry), REMOVE_OPTIONS)
    requireMajor(path, program.major)
  } catch (error) {
    throw describe(error, path)
  }
}

/**
 * Prepares a restart of the server. The data directory may have been removed, or replaced by a backup, since the last start.
 * This function never creates a database: an empty one would look as if all schedules were lost.
 */
export async function prepareRestart({ path, user, renewClaim }: DataDirectory): Promise<void> {
  try {
    if (!hasDatabase(path)) {
      const message = `the database in ${path} is gone: put it back, or stop and start again to get a new one`
      throw new PostgresError('database_missing', message)
    }
    await renewClaim()
    takeOwnership(path, user)
  } catch (error) {
    throw describe(error, path)
  }
}

/** The path that Postgres or initdb uses for `folder`, its working directory. */
export function nameForServer(folder: string, { obstacle }: DataDirectory): string {
  return obstacle === undefined ? folder : WORKING_FOLDER
}

/** The password of the superuser; undefined if Carillon did not create the database. */
export function readPassword(path: string): string | undefined {
  const passwordFile = join(path, PASSWORD_FILE)
  return existsSync(passwordFile) ? readFileSync(passwordFile, 'utf8').trim() : undefined
}

/** Turns any system error into one that names the data directory. */
function describe(error: unknown, path: string): unknown {
  const code = systemCodeOf(error)
  if (error instanceof PostgresError || code === undefined) return error
  return new PostgresError(
    'directory_unwritable',
    `expected a data directory that this user may write to at ${path}, got the error ${code}`,
    {
      cause: error,
    },
  )
}

function hasDatabase(path: string): boolean {
  return existsSync(join(path, 'PG_VERSION'))
}

function requireWorkingFolder(path: string, obstacle: string): void {
  if (existsSync(WORKING_FOLDER)) return
  throw new PostgresError(
    'path_blocked',
    `Postgres does not run as root, and the other user that it runs as may not enter ${obstacle} on the way to ` +
      `${path}: allow it with \`chmod o+x ${obstacle}\`, choose another data directory, or do not start as root`,
  )
}

function requireDatabaseOrNothing(path: string): void {
  const entries = entriesOf(path)
  if (entries.length === 0 || entries.some(isStaging) || hasDatabase(path)) return
  throw new PostgresError(
    'directory_foreign',
    `expected an empty folder or a Postgres database in ${path}, got other files: choose another data directory`,
  )
}

/** The entries of a data directory without the files that Carillon keeps there. */
function entriesOf(path: string): string[] {
  return readdirSync(path).filter((entry) => !isOwnEntry(entry))
}

function isStaging(entry: string): boolean {
  return entry.startsWith(STAGING_PREFIX)
}

/**
 * Creates a database such that a crash never leaves a partial one that looks complete. initdb writes to a staging folder.
 * Its entries are then moved up one by one, and PG_VERSION, which marks a database, is moved last.
 */
async function initialise(directory: DataDirectory, program: PostgresBinaries, sync: boolean): Promise<void> {
  const { path, user, obstacle } = directory
  for (const entry of entriesOf(path)) rmSync(join(path, entry), REMOVE_OPTIONS)
  const staging = join(path, `${STAGING_PREFIX}-${randomBytes(4).toString('hex')}`)
  mkdirSync(staging, { mode: 0o700 })
  if (user) lchownSync(staging, user.uid, user.gid)
  const passwordFile = join(path, PASSWORD_FILE)
  const password = createPassword(passwordFile, user)
  await runToEnd(
    program.initdb,
    [
      `--pgdata=${nameForServer(staging, directory)}`,
      '--username=postgres',
      '--auth=scram-sha-256',
      `--pwfile=${obstacle === undefined ? passwordFile : '/proc/self/fd/3'}`,
      '--encoding=UTF8',
      // Sorts text the same way on every machine, independent of its C library.
      '--locale-provider=builtin',
      '--builtin-locale=C.UTF-8',
      '--locale=C',
      '--no-instructions',
      // Many iterations protect weak passwords, but slow down every connection. One is enough for this password of 192 random bits.
      '--set=scram_iterations=1',
      ...(sync ? [] : ['--no-sync']),
    ],
    { user, cwd: staging, inherited: [password] },
  ).finally(() => closeSync(password))
  const created = readdirSync(staging).filter((entry) => entry !== 'PG_VERSION')
  for (const entry of [...created, 'PG_VERSION']) renameSync(join(staging, entry), join(path, entry))
}

/**
 * Creates the password file and returns its descriptor. Everything happens through the descriptor: the folder may belong
 * to another user, who could replace the file by a link.
 */
function createPassword(path: string, user: ServerUser): number {
  const { O_CREAT, O_EXCL, O_RDWR } = constants
  const file = openSync(path, O_CREAT | O_EXCL | O_RDWR, 0o600)
  writeSync(file, `${randomBytes(24).toString('base64url')}\n`)
  if (user) fchownSync(file, user.uid, user.gid)
  return file
}

function requireMajor(path: string, major: string): void {
  const found = readFileSync(join(path, 'PG_VERSION'), 'utf8').trim()
  if (found === major) return
  throw new PostgresError(
    'wrong_version',
    `expected a database of Postgres ${major} in ${path}, got one of Postgres ${found}: ` +
      'dump it with the old version and restore it into a new directory',
  )
}

/** Postgres requires a data directory that its user owns and others cannot enter. */
function takeOwnership(path: string, user: ServerUser): void {
  const { uid, mode } = statSync(path)
  if (user && uid !== user.uid) chownTree(path, user)
  if (process.platform !== 'win32' && (mode & 0o027) !== 0) chmodSync(path, 0o700)
}

/** Changes the owner of a folder and its content. Does not follow links. */
function chownTree(folder: string, user: NonNullable<ServerUser>): void {
  for (const entry of readdirSync(folder, { withFileTypes: true })) {
    const path = join(folder, entry.name)
    if (entry.isDirectory()) chownTree(path, user)
    else lchownSync(path, user.uid, user.gid)
  }
  lchownSync(folder, user.uid, user.gid)
}
