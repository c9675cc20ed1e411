import { existsSync, mkdirSync } from 'node:fs'
import { dirname } from 'node:path'

/**
 * Creates a folder and its missing parents. Node's recursive `mkdirSync` never returns below /proc, where the system reports
 * existing folders as missing, so this creates them one by one.
 * @returns true if this call created the folder itself
 */
export function makeDirectory(path: string, mode?: number): boolean {
  if (existsSync(path)) return false
  const parent = dirname(path)
  if (parent !== path) makeDirectory(parent, mode)
  try {
    mkdirSync(path, mode)
    return true
  } catch (error) {
    // Another process created it in the meantime.
    if (existsSync(path)) return false
    throw error
  }
}
