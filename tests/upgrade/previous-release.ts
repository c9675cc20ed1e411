import { execFileSync } from 'node:child_process'
import {
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

import { REPOSITORY } from '../house/run-tool.ts'
import { USER_ENV } from '../packages/user-env.ts'

/** Packed releases are kept between test runs: building one takes a minute. */
const CACHE = join(REPOSITORY, '.releases')

/** The commit of the last release: of the last tag before this commit, or, before the first tag, the one that is named in the file. */
export function previousCommit(): string {
  const git = (...args: string[]): string => execFileSync('git', args, { cwd: REPOSITORY, encoding: 'utf8' }).trim()
  const tags = git('tag', '--list', 'v*', '--merged', 'HEAD', '--no-contains', 'HEAD', '--sort=-version:refname')
  const [tag] = tags.split('\n').filter(Boolean)
  if (tag !== undefined) return git('rev-parse', `${tag}^{commit}`)
  const { commit } = JSON.parse(readFileSync(join(import.meta.dirname, 'previous-release.json'), 'utf8')) as {
    commit: string
  }
  return git('rev-parse', '--verify', `${commit}^{commit}`)
}

/** Installs the packages of a release into a folder, as its users would. */
export function installRelease(commit: string, folder: string): void {
  const tarballs = packedRelease(commit)
  mkdirSync(folder, { recursive: true })
  writeFileSync(join(folder, 'package.json'), JSON.stringify({ name: 'app', private: true, type: 'module' }))
  const files = readdirSync(tarballs).map((name) => join(tarballs, name))
  npm(folder, ['install', '--no-audit', '--no-fund', '--loglevel=error', ...files])
}

/** The tarballs of a release, packed by its own build. */
function packedRelease(commit: string): string {
  const kept = join(CACHE, commit)
  if (existsSync(kept)) return kept
  mkdirSync(CACHE, { recursive: true })
  // On the same disk as the cache, so that it takes the tarballs by a rename: a run that is killed leaves no half release.
  const work = mkdtempSync(join(CACHE, 'packing-'))
  try {
    const archive = execFileSync('git', ['archive', commit], { cwd: REPOSITORY, maxBuffer: 2 ** 28 })
    execFileSync('tar', ['-x'], { cwd: work, input: archive })
    npm(work, ['ci', '--no-audit', '--no-fund', '--loglevel=error'])
    npm(work, ['run', 'pack', '--', '--out', join(work, 'tarballs')])
    renameSync(join(work, 'tarballs'), kept)
    return kept
  } finally {
    rmSync(work, { recursive: true, force: true })
  }
}

function npm(cwd: string, args: readonly string[]): void {
  execFileSync('npm', args, { cwd, env: USER_ENV, stdio: ['ignore', 'ignore', 'inherit'] })
}

export function temporaryFolder(): string {
  return mkdtempSync(join(tmpdir(), 'carillon-upgrade-'))
}
