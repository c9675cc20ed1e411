import { randomBytes } from 'node:crypto'
import {
  accessSync,
  chmodSync,
  closeSync,
  constants,
  fsyncSync,
  linkSync,
  openSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeSync,
} from 'node:fs'
import { basename, dirname, join } from 'node:path'

import { ADMIN_KEY_FILE } from '@carillon/api'
import { VERSION } from '@carillon/core'
import { makeDirectory } from '@carillon/postgres'
import { z } from 'zod'

import { codeOf, OperatorError } from './operator-error.ts'

/** The folder of an installation: its keys, and the embedded Postgres unless DATABASE_URL names another. */
export interface DataDirectory {
  readonly path: string
  readonly postgresDir: string
  readonly adminKeyFile: string
  readonly secretsKeyFile: string
}

/** Increased when the layout of the folder changes, so that an earlier version refuses to read it. */
const LAYOUT = 1
const VERSION_FILE = 'version.json'
/** The name of a file that is being written begins with this. A process that died may have left such a file behind. */
const UNFINISHED_PREFIX = '.unfinished-'
/**
 * Other users may pass through the folder but not list it. If root starts Carillon, Postgres runs as another user, who must reach
 * the data in it. The data and the keys are protected by modes of their own.
 */
const DIRECTORY_MODE = 0o711

const versionSchema = z.object({ layout: z.int().min(1), carillon: z.string().max(100) })

export function describeDataDirectory(path: string): DataDirectory {
  return {
    path,
    postgresDir: join(path, 'postgres'),
    adminKeyFile: join(path, ADMIN_KEY_FILE),
    secretsKeyFile: join(path, 'secrets.key'),
  }
}

/** Opens the data directory, and creates it if it is missing. @throws OperatorError, before any file of the folder is changed */
export function openDataDirectory(path: string): DataDirectory {
  try {
    createDirectory(path)
    accessSync(path, constants.R_OK | constants.W_OK | constants.X_OK)
    const written = readVersionOf(path)
    if (written?.carillon !== VERSION) {
      const version = { layout: LAYOUT, carillon: VERSION }
      replaceFile(join(path, VERSION_FILE), { text: `${JSON.stringify(version)}\n`, mode: 0o644 })
    }
  } catch (error) {
    throw unusable(error, path)
  }
  return describeDataDirectory(path)
}

/** Returns undefined if there is no data directory. @throws OperatorError if the folder cannot be used */
export function findDataDirectory(path: string): DataDirectory | undefined {
  try {
    return readVersionOf(path) === undefined ? undefined : describeDataDirectory(path)
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return undefined
    throw unusable(error, path)
  }
}

function createDirectory(path: string): void {
  const isNew = makeDirectory(path, DIRECTORY_MODE)
  // The umask may have removed bits. The mode of an existing folder is left alone.
  if (isNew) chmodSync(path, DIRECTORY_MODE)
}

/** Reads the version file. Undefined for an empty folder. */
function readVersionOf(path: string): z.infer<typeof versionSchema> | undefined {
  const entries = readdirSync(path).filter((entry) => !entry.startsWith(UNFINISHED_PREFIX))
  if (entries.length === 0) return undefined
  if (!entries.includes(VERSION_FILE)) {
    throw new OperatorError(
      'data_directory_foreign',
      `expected an empty folder or a data directory of Carillon at ${path}, got other files (such as ${entries[0]}): ` +
        'choose another with CARILLON_DATA_DIR',
    )
  }
  const version = versionSchema.safeParse(parse(readFileSync(join(path, VERSION_FILE), 'utf8')))
  if (!version.success) {
    throw new OperatorError(
      'data_directory_foreign',
      `${join(path, VERSION_FILE)}: expected a text such as ${JSON.stringify({ layout: LAYOUT, carillon: VERSION })}, got another: ` +
        'restore the file, or choose another directory with CARILLON_DATA_DIR',
    )
  }
  const { layout, carillon } = version.data
  if (layout > LAYOUT) {
    throw new OperatorError(
      'data_directory_newer',
      `expected a data directory of layout ${LAYOUT} or earlier at ${path}, got layout ${layout} of Carillon ${carillon}: ` +
        'start that version or a later one, or choose another directory with CARILLON_DATA_DIR',
    )
  }
  return version.data
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

/** Turns an error of the file system into one sentence for the operator. Returns any other error as it is. */
export function unusable(error: unknown, path: string): unknown {
  const code = codeOf(error)
  if (error instanceof OperatorError || code === undefined) return error
  const found = isFile(path) ? 'a file' : `the error ${code}`
  return new OperatorError(
    'data_directory_unusable',
    `expected a directory that this user may write to at ${path}, got ${found}: make it one, or choose another with CARILLON_DATA_DIR`,
    { cause: error },
  )
}

function isFile(path: string): boolean {
  try {
    return !statSync(path).isDirectory()
  } catch {
    return false
  }
}

interface FileContent {
  readonly text: string
  readonly mode: number
}

/** Replaces a file. After a crash at any moment it has its old or its new content. */
function replaceFile(path: string, content: FileContent): void {
  writeThen(path, content, (unfinished) => renameSync(unfinished, path))
}

/** Creates a file with its whole content. Returns false, and changes nothing, if it already exists. */
export function createFile(path: string, content: FileContent): boolean {
  return writeThen(path, content, (unfinished) => {
    try {
      // Unlike a rename, a link never replaces a file: if two processes start at once, the second one fails here.
      linkSync(unfinished, path)
      return true
    } catch (error) {
      if (codeOf(error) === 'EEXIST') return false
      throw error
    }
  })
}

/** Writes and syncs a temporary file beside `path`, calls `publish` with its path, and removes it if it is still there. */
function writeThen<Result>(path: string, { text, mode }: FileContent, publish: (path: string) => Result): Result {
  const unfinished = join(dirname(path), `${UNFINISHED_PREFIX}${basename(path)}-${randomBytes(6).toString('hex')}`)
  try {
    const file = openSync(unfinished, 'wx', mode)
    try {
      writeSync(file, text)
      fsyncSync(file)
    } finally {
      closeSync(file)
    }
    return publish(unfinished)
  } finally {
    rmSync(unfinished, { force: true })
  }
}
