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
import type { Program } from './program.ts'
import { runToEnd } from './server-process.ts'
import { findObstacle, type ServerUser } from './server-user.ts'

/**
 * Where a new database is made before it is moved up, with a random end: the initdb of a process that was killed may still
 * write to the one before. Its presence says that the move did not end.
 */
const STAGING_PREFIX = '.initialising'
/** An initdb that is ending may add files while they are removed. */
const REMOVED_FOR_GOOD = { recursive: true, force: true, maxRetries: 20, retryDelay: 100 }
/** In the data directory, which only its owner may read. A database that was made elsewhere has none. */
const PASSWORD_FILE = 'superuser-password'
/**
 * The folder that a process works in, by a name that its user can open although folders above it are closed: Linux goes
 * straight to the folder and does not walk the path. Processes that Postgres starts work in the same folder.
 */
const WORKING_FOLDER = '/proc/self/cwd'

/** A folder for a database, claimed by this process until `release`. */
export interface DataDirectory {
  readonly path: string
  readonly user: ServerUser
  /** A folder above it that the server's user may not enter. The server then works in it without walking its path. */
  readonly obstacle: string | undefined
  /** Claims the folder again if its claim is gone: somebody may have put a backup in its place. */
  readonly renewClaim: () => Promise<void>
  readonly release: () => void
}

/** Claims a folder for the server's user, and makes it if it is not there. Throws if it holds something else. */
export async function openDataDirectory(given: string, user: ServerUser): Promise<DataDirectory> {
  let path = given
  try {
    makeDirectory(path)
    // Through links, so that rights are looked at, and given, where the data really are.
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
      takeOver(path, user)
      return { path, user, obstacle, renewClaim, release: () => claim.release() }
    } catch (error) {
      claim.release()
      throw error
    }
  } catch (error) {
    throw describe(error, path)
  }
}

/** Makes a new database unless there is one. `sync` is off where losing it in a power cut does not matter. */
export async function ensureDatabase(directory: DataDirectory, program: Program, sync: boolean): Promise<void> {
  const { path } = directory
  try {
    if (!hasDatabase(path)) await initialise(directory, program, sync)
    for (const entry of entriesOf(path).filter(isStaging)) rmSync(join(path, entry), REMOVED_FOR_GOOD)
    requireMajor(path, program.major)
  } catch (error) {
    throw describe(error, path)
  }
}

/**
 * Prepares a restart of the server. The data directory may have been removed, or replaced by a backup, since the last start.
 * Makes no new database: an empty one in the place of the old one would look like the loss of all schedules.
 */
export async function requireDatabase({ path, user, renewClaim }: DataDirectory): Promise<void> {
  try {
    if (!hasDatabase(path)) {
      const message = `the database in ${path} is gone: put it back, or stop and start again to get a new one`
      throw new PostgresError('database_missing', message)
    }
    await renewClaim()
    takeOver(path, user)
  } catch (error) {
    throw describe(error, path)
  }
}

/** What the server is to call a folder that it works in. */
export function nameForServer(folder: string, { obstacle }: DataDirectory): string {
  return obstacle === undefined ? folder : WORKING_FOLDER
}

/** Undefined if the database was made by somebody else. */
export function readPassword(path: string): string | undefined {
  const passwordFile = join(path, PASSWORD_FILE)
  return existsSync(passwordFile) ? readFileSync(passwordFile, 'utf8').trim() : undefined
}

/** Every failure of the system here means the same to the person who chose the directory. */
function describe(error: unknown, path: string): unknown {
  const code = systemCodeOf(error)
  if (error instanceof PostgresError || code === undefined) return error
  return new PostgresError('directory_unwritable', `the data directory ${path} cannot be written to (${code})`, {
    cause: error,
  })
}

function hasDatabase(path: string): boolean {
  return existsSync(join(path, 'PG_VERSION'))
}

function requireWorkingFolder(path: string, obstacle: string): void {
  if (existsSync(WORKING_FOLDER)) return
  throw new PostgresError(
    'path_blocked',
    `Postgres does not run as root, and the user as which it runs instead may not enter ${obstacle} on the way to ` +
      `${path}: allow it with \`chmod o+x ${obstacle}\`, choose another place, or do not start as root`,
  )
}

function requireDatabaseOrNothing(path: string): void {
  const entries = entriesOf(path)
  if (entries.length === 0 || entries.some(isStaging) || hasDatabase(path)) return
  throw new PostgresError('directory_foreign', `the data directory ${path} holds files that are no Postgres database`)
}

/** What Carillon keeps beside the database does not count. */
function entriesOf(path: string): string[] {
  return readdirSync(path).filter((entry) => !isOwnEntry(entry))
}

function isStaging(entry: string): boolean {
  return entry.startsWith(STAGING_PREFIX)
}

/**
 * A crash in the middle leaves no half-made database that looks whole: it is made in a folder below, moved up entry by
 * entry, and PG_VERSION, by which we know a database, comes last.
 */
async function initialise(directory: DataDirectory, program: Program, sync: boolean): Promise<void> {
  const { path, user, obstacle } = directory
  for (const entry of entriesOf(path)) rmSync(join(path, entry), REMOVED_FOR_GOOD)
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
      // The same order of text on every machine, whatever its C library.
      '--locale-provider=builtin',
      '--builtin-locale=C.UTF-8',
      '--locale=C',
      '--no-instructions',
      // Many iterations slow down guessing a weak password; this one has 192 random bits, and every connection pays.
      '--set=scram_iterations=1',
      ...(sync ? [] : ['--no-sync']),
    ],
    { user, cwd: staging, inherited: [password] },
  ).finally(() => closeSync(password))
  const made = readdirSync(staging).filter((entry) => entry !== 'PG_VERSION')
  for (const entry of [...made, 'PG_VERSION']) renameSync(join(staging, entry), join(path, entry))
}

/** An open file. By its descriptor alone: the folder may be another user's, who could put a link in the name's place. */
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
    `the data directory ${path} was made by Postgres ${found}, but this is Postgres ${major}: ` +
      'dump it with the old version and restore it into a new directory',
  )
}

/** Postgres insists on a directory that is its user's and closed to others. */
function takeOver(path: string, user: ServerUser): void {
  const { uid, mode } = statSync(path)
  if (user && uid !== user.uid) chownTree(path, user)
  if (process.platform !== 'win32' && (mode & 0o027) !== 0) chmodSync(path, 0o700)
}

/** Follows no link out of the folder. */
function chownTree(folder: string, user: NonNullable<ServerUser>): void {
  for (const entry of readdirSync(folder, { withFileTypes: true })) {
    const path = join(folder, entry.name)
    if (entry.isDirectory()) chownTree(path, user)
    else lchownSync(path, user.uid, user.gid)
  }
  lchownSync(folder, user.uid, user.gid)
}
