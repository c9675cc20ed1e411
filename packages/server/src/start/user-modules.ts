import { createRequire } from 'node:module'
import { isAbsolute, join, resolve } from 'node:path'
import { pathToFileURL } from 'node:url'

import { messageOf } from '@carillon/api'
import type { AnyManifest } from '@carillon/core'

import { OperatorError } from './operator-error.ts'

const EXPECTED = 'a module of Carillon: a manifest as the default export, or as the export `module`'

/**
 * Imports the manifests of users' modules. An entry is a file, relative to the working directory, or a package that is installed there. A file
 * may be TypeScript: Node strips its types, except below `node_modules`.
 * @throws OperatorError which names the entry
 */
export async function importManifests(entries: readonly string[], folder: string): Promise<AnyManifest[]> {
  const manifests: AnyManifest[] = []
  for (const entry of entries) manifests.push(await importManifest(entry, folder))
  return manifests
}

async function importManifest(entry: string, folder: string): Promise<AnyManifest> {
  let exported: Readonly<Record<string, unknown>>
  try {
    exported = (await import(pathToFileURL(locate(entry, folder)).href)) as typeof exported
  } catch (error) {
    throw refused(entry, `an error when it was imported: ${firstLine(messageOf(error))}`, error)
  }
  const found = [exported['default'], exported['module']].find(isManifestLike)
  if (found === undefined) throw refused(entry, `exports ${Object.keys(exported).join(', ') || 'of no name'}`)
  return found
}

/** @throws an error of Node if nothing is there */
function locate(entry: string, folder: string): string {
  if (/^\.{0,2}\//.test(entry) || isAbsolute(entry)) return resolve(folder, entry)
  return createRequire(join(folder, 'carillon.js')).resolve(entry)
}

/** Whether its fields are right is checked with those of all other modules. */
function isManifestLike(value: unknown): value is AnyManifest {
  return typeof value === 'object' && value !== null && 'port' in value && 'name' in value
}

function refused(entry: string, found: string, cause?: unknown): OperatorError {
  const message = `CARILLON_MODULES: expected ${entry} to be ${EXPECTED}, got ${found}`
  return new OperatorError('module_refused', message, { cause })
}

function firstLine(text: string): string {
  return text.split('\n')[0] ?? ''
}
