import { accessSync, chmodSync, constants, readdirSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'

import { VERSION } from '@carillon/core'
import { makeDirectory } from '@carillon/postgres'
import { z } from 'zod'

import { replaceFile, UNFINISHED_PREFIX } from './atomic-file.ts'
import { codeOf, ServiceError } from './service-error.ts'

/** The folder that holds everything of an installation that is not in a Postgres of somebody else. */
export interface DataDirectory {
  readonly path: string
  readonly postgresDir: string
  readonly adminKeyFile: string
  readonly secretsKeyFile: string
}

/** Raised when what lies where in the folder changes, so that no earlier version reads it wrongly. */
const LAYOUT = 1
const VERSION_FILE = 'version.json'
/**
 * Open to pass through, closed to look: started by root, Postgres runs as another user, who has to get to its data. The
 * data and the keys are closed by their own modes.
 */
const DIRECTORY_MODE = 0o711

const versionSchema = z.object({ layout: z.int().min(1), carillon: z.string().max(100) })

export function describeDataDirectory(path: string): DataDirectory {
  return {
    path,
    postgresDir: join(path, 'postgres'),
    adminKeyFile: join(path, 'admin.key'),
    secretsKeyFile: join(path, 'secrets.key'),
  }
}

/** Opens the data directory, and makes it if there is none. Throws ServiceError, having changed nothing. */
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

/** The data directory if there is one. Throws ServiceError if what is there is not ours to use. */
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
  // Again, because the process may take rights away from what it makes. Folders that were there are not ours to open.
  if (isNew) chmodSync(path, DIRECTORY_MODE)
}

/** Undefined if nothing was written yet. */
function readVersionOf(path: string): z.infer<typeof versionSchema> | undefined {
  const entries = readdirSync(path).filter((entry) => !entry.startsWith(UNFINISHED_PREFIX))
  if (entries.length === 0) return undefined
  if (!entries.includes(VERSION_FILE)) {
    throw new ServiceError(
      'data_directory_foreign',
      `the data directory ${path} holds files that Carillon did not write (such as ${entries[0]}): ` +
        'choose another with CARILLON_DATA_DIR',
    )
  }
  const version = versionSchema.safeParse(parse(readFileSync(join(path, VERSION_FILE), 'utf8')))
  if (!version.success) {
    throw new ServiceError(
      'data_directory_foreign',
      `${join(path, VERSION_FILE)} is not as Carillon writes it: restore it as ${JSON.stringify({ layout: LAYOUT, carillon: VERSION })}, ` +
        'or choose another directory with CARILLON_DATA_DIR',
    )
  }
  const { layout, carillon } = version.data
  if (layout > LAYOUT) {
    throw new ServiceError(
      'data_directory_newer',
      `the data directory ${path} was written by Carillon ${carillon}, whose layout ${layout} this Carillon ${VERSION} cannot read: ` +
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

/** What the system says, as a sentence for who chose the directory. */
export function unusable(error: unknown, path: string): unknown {
  const code = codeOf(error)
  if (error instanceof ServiceError || code === undefined) return error
  const reason = isFile(path) ? 'is a file' : `cannot be written to (${code})`
  return new ServiceError(
    'data_directory_unusable',
    `the data directory ${path} ${reason}: make it a directory that this user may write to, or choose another with CARILLON_DATA_DIR`,
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
