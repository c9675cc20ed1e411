import { randomBytes } from 'node:crypto'
import {
  accessSync,
  chmodSync,
  constants,
  existsSync,
  lchownSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'

import type { Binaries } from './binaries.ts'
import { makeDirectory } from './make-directory.ts'
import { PostgresError, systemCodeOf } from './postgres-error.ts'
import { runToEnd } from './server-process.ts'
import { requireReachable, type ServerUser } from './server-user.ts'

/** Where a new database is made before it is moved up. Its presence says that the move did not end. */
const STAGING = '.initialising'
/** In the data directory, which only its owner may read. A database that was made elsewhere has none. */
const PASSWORD_FILE = 'superuser-password'

export interface DataDirectory {
  readonly path: string
  /** Undefined if the database was made by somebody else. */
  readonly password: string | undefined
}

interface PrepareOptions {
  readonly path: string
  readonly user: ServerUser
  readonly binaries: Binaries
  /** Off where losing the database in a power cut does not matter. */
  readonly sync: boolean
}

/** Makes `path` a data directory that the server's user can serve, with a new database if it holds none. */
export async function prepareDataDirectory(options: PrepareOptions): Promise<DataDirectory> {
  const { path, user, binaries } = options
  try {
    makeDirectory(path)
    requireReachable(path, user)
    accessSync(path, constants.R_OK | constants.W_OK | constants.X_OK)
    if (!hasDatabase(path)) await initialise(options)
    requireMajor(path, binaries.major)
    takeOver(path, user)
  } catch (error) {
    throw describe(error, path)
  }
  return { path, password: readPassword(path) }
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

/**
 * A crash in the middle leaves no half-made database that looks whole: it is made in a folder below, moved up entry by
 * entry, and PG_VERSION, by which we know a database, comes last.
 */
async function initialise({ path, user, binaries, sync }: PrepareOptions): Promise<void> {
  const entries = readdirSync(path)
  const staging = join(path, STAGING)
  if (entries.includes(STAGING)) {
    for (const entry of entries) rmSync(join(path, entry), { recursive: true })
  } else if (entries.length > 0) {
    throw new PostgresError('directory_foreign', `the data directory ${path} holds files that are no Postgres database`)
  }
  mkdirSync(staging, { mode: 0o700 })
  const passwordFile = join(path, PASSWORD_FILE)
  writeFileSync(passwordFile, `${randomBytes(24).toString('base64url')}\n`, { mode: 0o600 })
  if (user) for (const owned of [path, staging, passwordFile]) lchownSync(owned, user.uid, user.gid)
  await runToEnd(
    binaries.initdb,
    [
      `--pgdata=${staging}`,
      '--username=postgres',
      '--auth=scram-sha-256',
      `--pwfile=${passwordFile}`,
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
    { user, cwd: staging },
  )
  const made = readdirSync(staging).filter((entry) => entry !== 'PG_VERSION')
  for (const entry of [...made, 'PG_VERSION']) renameSync(join(staging, entry), join(path, entry))
  rmSync(staging, { recursive: true })
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
  rmSync(join(path, STAGING), { recursive: true, force: true })
  const { uid, mode } = statSync(path)
  if (user && uid !== user.uid) {
    for (const entry of readdirSync(path, { recursive: true, encoding: 'utf8' })) {
      lchownSync(join(path, entry), user.uid, user.gid)
    }
    lchownSync(path, user.uid, user.gid)
  }
  if (process.platform !== 'win32' && (mode & 0o027) !== 0) chmodSync(path, 0o700)
}
