import { spawnSync } from 'node:child_process'
import { accessSync, chmodSync, constants, existsSync, readFileSync, symlinkSync } from 'node:fs'
import { basename, join } from 'node:path'

import { systemCodeOf } from './postgres-error.ts'
import type { ServerUser } from './server-user.ts'

/** The path of a binary in an installed or copied Postgres. */
export function binaryIn(folder: string, name: 'postgres' | 'initdb'): string {
  return join(folder, 'native', 'bin', process.platform === 'win32' ? `${name}.exe` : name)
}

/**
 * Does the work of the package's install script, so npm need not run install scripts. Throws if something is missing and
 * the folder is not writable.
 */
export function completeProgram(folder: string): void {
  linkLibraries(folder)
  ensureExecutable(binaryIn(folder, 'postgres'))
  ensureExecutable(binaryIn(folder, 'initdb'))
}

/** True if the server's user can run the program. Folder modes, file modes and `noexec` mounts can prevent it. */
export function isRunnable(folder: string, user: ServerUser): boolean {
  return spawnSync(binaryIn(folder, 'postgres'), ['--version'], { ...user, cwd: '/', stdio: 'ignore' }).status === 0
}

/** npm packages cannot contain symbolic links, but the binaries need `libicuuc.so.60`, and only `libicuuc.so.60.2` exists. */
export function linkLibraries(folder: string): void {
  const list = join(folder, 'native', 'pg-symlinks.json')
  if (!existsSync(list)) return
  const links = JSON.parse(readFileSync(list, 'utf8')) as { source: string; target: string }[]
  for (const { source, target } of links) {
    const link = join(folder, target)
    if (!existsSync(link)) createLink(basename(source), link)
  }
}

function createLink(source: string, link: string): void {
  try {
    symlinkSync(source, link)
  } catch (error) {
    // Another process that starts at the same time created the link.
    if (systemCodeOf(error) !== 'EEXIST') throw error
  }
}

function ensureExecutable(path: string): void {
  try {
    accessSync(path, constants.X_OK)
  } catch {
    chmodSync(path, 0o755)
  }
}
