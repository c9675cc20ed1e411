import { execFile } from 'node:child_process'
import { cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync } from 'node:fs'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { promisify } from 'node:util'

/** Its package.json and lockfile state the version. It is not a workspace, so `npm install` does not download its 216 MB. */
const MANIFEST_FOLDER = resolve(import.meta.dirname, '../../../tests/restate')

const PACKAGE = '@restatedev/restate-server'

/** The time limit of a hook or test that may be the first to need Restate, and then waits for the download. */
export const FETCH_LIMIT_MS = 10 * 60_000

/** The binary itself, because the script that npm links would be a process between this one and Restate. */
export async function findRestate(): Promise<string> {
  const version = readManifest(join(MANIFEST_FOLDER, 'package.json')).dependencies?.[PACKAGE] ?? ''
  // The install is in the checkout, or beside it if the checkout cannot be written to.
  const folders = [MANIFEST_FOLDER, join(tmpdir(), `carillon-restate-${version}-${process.geteuid?.() ?? 0}`)]
  const found = folders.map((folder) => binaryIn(folder, version)).find((binary) => binary !== undefined)
  return found ?? fetchRestate(folders, version)
}

async function fetchRestate(folders: readonly string[], version: string): Promise<string> {
  process.stderr.write(`fetching Restate ${version} (216 MB): only the tests and the example that call it need it\n`)
  for (const folder of folders) {
    const staging = tryMake(folder)
    if (staging === undefined) continue
    try {
      for (const file of ['package.json', 'package-lock.json', '.npmrc']) {
        cpSync(join(MANIFEST_FOLDER, file), join(staging, file))
      }
      await promisify(execFile)('npm', ['ci', '--no-audit', '--no-fund'], { cwd: staging })
      // The rename is atomic. If two processes download at once, the later one discards its copy.
      if (!existsSync(join(folder, 'node_modules'))) {
        renameSync(join(staging, 'node_modules'), join(folder, 'node_modules'))
      }
    } finally {
      rmSync(staging, { recursive: true, force: true })
    }
    const binary = binaryIn(folder, version)
    if (binary !== undefined) return binary
  }
  throw new Error(`expected Restate ${version} for ${process.platform}-${process.arch} from npm, got none`)
}

/** A folder for an install. Undefined if this user may not write there. */
function tryMake(folder: string): string | undefined {
  try {
    mkdirSync(folder, { recursive: true, mode: 0o700 })
    return mkdtempSync(join(folder, '.fetching-'))
  } catch {
    return undefined
  }
}

function binaryIn(folder: string, version: string): string | undefined {
  try {
    const require = createRequire(join(folder, 'package.json'))
    const installed = readManifest(require.resolve(`${PACKAGE}/package.json`))
    const name = `${PACKAGE}-${process.platform}-${process.arch}/bin/restate-server`
    return installed.version === version ? require.resolve(name) : undefined
  } catch {
    return undefined
  }
}

interface Manifest {
  readonly version: string
  readonly dependencies?: Readonly<Record<string, string>>
}

function readManifest(path: string): Manifest {
  return JSON.parse(readFileSync(path, 'utf8')) as Manifest
}
