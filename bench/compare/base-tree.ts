import { existsSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { isAbsolute, join } from 'node:path'

import { describeCarillon, REPOSITORY } from '../machine.ts'
import { runProgram } from './run-program.ts'

/** A folder with Carillon's code and its dependencies. */
export interface Tree extends AsyncDisposable {
  readonly folder: string
  /** Its version and its commit, if they are known. */
  readonly name: string
}

interface OpenOptions {
  /** A relative folder is relative to this one. */
  readonly cwd: string
  /** The repository that has the commit. @default the repository of this file */
  readonly repository?: string
  readonly signal: AbortSignal
  readonly note: (text: string) => void
}

/** `npm run --prefix` sets these variables for its children. With them, npm in another folder would install into this one. */
const OWN_PREFIX = /^npm_(config_(local_)?prefix|package_.*)$/i

/**
 * Opens a folder, or a checkout of a commit. The checkout is in a temporary folder, with the dependencies of its lockfile, and is removed
 * on disposal. The repository itself is only read.
 * @throws Error if there is neither such a folder nor such a commit, or if its dependencies cannot be installed
 */
export async function openTree(base: string, options: OpenOptions): Promise<Tree> {
  const folder = isAbsolute(base) ? base : join(options.cwd, base)
  if (existsSync(join(folder, 'package.json'))) return openFolder(folder)
  const { repository = REPOSITORY, signal } = options
  const commit = await commitOf(base, repository, signal)
  return checkOut(commit, { ...options, repository })
}

function openFolder(folder: string): Tree {
  if (!existsSync(join(folder, 'node_modules'))) {
    throw new Error(`expected ${folder} with its dependencies, got no node_modules: run npm ci there`)
  }
  return {
    folder,
    name: `${describeCarillon(folder)}, in ${folder}`,
    [Symbol.asyncDispose]: () => Promise.resolve(),
  }
}

async function commitOf(base: string, repository: string, signal: AbortSignal): Promise<string> {
  const args = ['rev-parse', '--verify', '--quiet', '--end-of-options', `${base}^{commit}`]
  try {
    return (await runProgram('git', args, { cwd: repository, signal })).trim()
  } catch (error) {
    signal.throwIfAborted()
    const message = `expected --base with a commit of ${repository} or a folder with a package.json, got "${base}"`
    throw new Error(message, { cause: error })
  }
}

async function checkOut(commit: string, { repository = REPOSITORY, signal, note }: OpenOptions): Promise<Tree> {
  const temporary = mkdtempSync(join(tmpdir(), 'carillon-compare-'))
  // The removal is synchronous, so that the time limit after an interrupt cannot cut it off.
  const remove = (): Promise<void> => {
    rmSync(temporary, { recursive: true, force: true })
    return Promise.resolve()
  }
  try {
    const [archive, folder] = [join(temporary, 'tree.tar'), join(temporary, 'tree')]
    const short = commit.slice(0, 7)
    note(`checking out ${short} into ${folder}`)
    mkdirSync(folder)
    await runProgram('git', ['archive', '--format=tar', `--output=${archive}`, commit], { cwd: repository, signal })
    await runProgram('tar', ['-xf', archive], { cwd: folder, signal })
    rmSync(archive)
    note(`installing the dependencies of ${short}`)
    await install(folder, signal)
    return { folder, name: `${describeCarillon(folder)}, commit ${short}`, [Symbol.asyncDispose]: remove }
  } catch (error) {
    await remove()
    throw error
  }
}

/** Installs from npm's cache where possible. It runs no install scripts, because neither Node nor Postgres of the base is used. */
async function install(folder: string, signal: AbortSignal): Promise<void> {
  const env = Object.fromEntries(Object.entries(process.env).filter(([name]) => !OWN_PREFIX.test(name)))
  const args = ['ci', '--omit=dev', '--ignore-scripts', '--prefer-offline', '--no-audit', '--no-fund']
  await runProgram('npm', args, { cwd: folder, env, signal })
}
