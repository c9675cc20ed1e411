import { execFile, execFileSync } from 'node:child_process'
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'

import { installTarballs } from '../../scripts/packages/install.ts'
import { REPOSITORY } from '../house/run-tool.ts'
import { USER_ENV } from '../packages/user-env.ts'

/** Packed releases are kept between test runs: building one takes a minute. */
const CACHE = join(REPOSITORY, '.releases')
/** What packs a commit from before there were packages: the build of today, and the command that finds the Node it brings. */
const TODAYS_BUILD = ['scripts/build.ts', 'scripts/pack.ts', 'scripts/packages', 'packages/cli/bin/carillon.js']

interface Release {
  readonly commit: string
  /** False for the commit that stands in before the first tag. It is chosen so that there is a migration to apply. */
  readonly isTagged: boolean
}

/**
 * The last release: the last tag before this commit, or, before the first tag, the commit that is named in the file.
 * @returns undefined if git does not have that commit here
 */
export function previousRelease(): Release | undefined {
  const tag = lastTag(REPOSITORY)
  const commit = git(REPOSITORY, 'rev-parse', '--quiet', '--verify', `${tag ?? namedCommit()}^{commit}`)
  return commit === undefined ? undefined : { commit, isTagged: tag !== undefined }
}

/** The tag of the highest version before the commit that a repository has checked out. */
export function lastTag(repository: string): string | undefined {
  // Without this setting git takes v0.1.0-rc.1 for a later version than v0.1.0.
  const sorted = ['-c', 'versionsort.suffix=-', 'tag', '--sort=-version:refname']
  const tags = git(repository, ...sorted, '--list', 'v*', '--merged', 'HEAD', '--no-contains', 'HEAD') ?? ''
  return tags.split('\n').find(Boolean)
}

/**
 * Whether there is a release to upgrade. If not, prints what is missing and how to get it.
 * @throws if there is none on CI, where skipped tests would go unnoticed
 */
export function hasRelease(release: Release | undefined, env: NodeJS.ProcessEnv): release is Release {
  if (release !== undefined) return true
  const missing = `git does not have commit ${namedCommit()}, which is the release to upgrade. A shallow clone gets it by git fetch --unshallow, a source archive has no history: clone the repository.`
  if (env['CI']) throw new Error(`The upgrade tests cannot run: ${missing}`)
  process.stderr.write(`The upgrade tests are skipped: ${missing}\n`)
  return false
}

/** Installs the packages of a release into a folder, as its users would. */
export async function installRelease(commit: string, folder: string): Promise<void> {
  await installTarballs(await packedRelease(commit), folder, { env: USER_ENV })
}

function namedCommit(): string {
  const file = readFileSync(join(import.meta.dirname, 'previous-release.json'), 'utf8')
  return (JSON.parse(file) as { commit: string }).commit
}

/** Undefined if git fails: it knows no such commit, or there is no repository. */
function git(cwd: string, ...args: readonly string[]): string | undefined {
  try {
    return execFileSync('git', args, { cwd, encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] }).trim()
  } catch {
    return undefined
  }
}

/** The tarballs of a release, packed by its own build if it has one. */
async function packedRelease(commit: string): Promise<string> {
  const kept = join(CACHE, commit)
  if (existsSync(kept)) return kept
  mkdirSync(CACHE, { recursive: true })
  sweepPackings(CACHE)
  // On the same disk as the cache, so that it takes the tarballs by a rename: a run that is killed leaves no half release.
  const work = mkdtempSync(join(CACHE, `packing-${process.pid}-`))
  const run = (command: string, ...args: string[]) => promisify(execFile)(command, args, { cwd: work, env: USER_ENV })
  try {
    const archive = join(work, 'archive.tar')
    await promisify(execFile)('git', ['archive', '--output', archive, commit], { cwd: REPOSITORY })
    await run('tar', '-xf', archive)
    if (!existsSync(join(work, 'scripts/pack.ts'))) layBuildOver(work)
    await run('npm', 'ci', '--prefer-offline', '--no-audit', '--no-fund', '--loglevel=error')
    await run(process.execPath, 'scripts/pack.ts', '--out', join(work, 'tarballs'))
    renameSync(join(work, 'tarballs'), kept)
    return kept
  } finally {
    rmSync(work, { recursive: true, force: true })
  }
}

/** Removes what packings left whose process was killed. */
export function sweepPackings(cache: string): void {
  for (const name of readdirSync(cache)) {
    const [, pid] = /^packing-(\d+)-/.exec(name) ?? []
    if (pid !== undefined && !isAlive(Number(pid))) rmSync(join(cache, name), { recursive: true, force: true })
  }
}

function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0)
  } catch (error) {
    // A process of another user.
    return (error as NodeJS.ErrnoException).code === 'EPERM'
  }
}

function layBuildOver(work: string): void {
  for (const path of TODAYS_BUILD) cpSync(join(REPOSITORY, path), join(work, path), { recursive: true })
  // The one line that cannot be packed: it imports a file from outside of `src`, which the compiler refuses to write elsewhere.
  const file = join(work, 'packages/targets/src/http/request.ts')
  const text = readFileSync(file, 'utf8')
  const line = "import manifest from '../../package.json' with { type: 'json' }"
  if (!text.includes(line)) throw new Error(`expected ${file} to contain: ${line}`)
  writeFileSync(file, text.replace(line, "const manifest = { version: '0.1.0' }"))
}

export function temporaryFolder(): string {
  return mkdtempSync(join(tmpdir(), 'carillon-upgrade-'))
}
