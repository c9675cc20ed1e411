import { readFileSync } from 'node:fs'
import { findPackageJSON } from 'node:module'

/** The installed version of a package. */
export function versionOf(name: string): string {
  const path = findPackageJSON(name, import.meta.url)
  if (path === undefined) throw new Error(`expected ${name} to be installed, got nothing: run npm install in bench/`)
  const { version } = JSON.parse(readFileSync(path, 'utf8')) as { version: string }
  return version
}
