import { existsSync, readFileSync, symlinkSync } from 'node:fs'
import { basename, join } from 'node:path'

import { systemCodeOf } from './postgres-error.ts'

/**
 * npm packages hold no symbolic links, but the binaries look for `libicuuc.so.60`, and there is only `libicuuc.so.60.2`.
 * The package has an install script that makes the links. Done here, so that no install script has to be trusted.
 */
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
    // Another process that starts at the same time made it.
    if (systemCodeOf(error) !== 'EEXIST') throw error
  }
}
