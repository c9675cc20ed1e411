import { existsSync, mkdirSync } from 'node:fs'
import { dirname } from 'node:path'

/**
 * Makes a folder and those above it that are not there. One by one: the recursive call of Node never ends where the system
 * says of a folder that exists that it does not, as below /proc.
 * @returns whether the folder itself was made
 */
export function makeDirectory(path: string, mode?: number): boolean {
  if (existsSync(path)) return false
  const parent = dirname(path)
  if (parent !== path) makeDirectory(parent, mode)
  try {
    mkdirSync(path, mode)
    return true
  } catch (error) {
    // Somebody else made it in between.
    if (existsSync(path)) return false
    throw error
  }
}
