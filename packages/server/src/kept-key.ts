import { readFileSync } from 'node:fs'

import { createFile } from './atomic-file.ts'
import { unusable, type DataDirectory } from './data-directory.ts'
import { codeOf, ServiceError } from './service-error.ts'

interface KeyFile {
  readonly file: string
  /** A new key, for when there is none. */
  readonly make: () => string
  readonly isSound: (text: string) => boolean
  /** What is said of a file that holds something else: what it lacks, and what to do. */
  readonly fault: string
}

/** The key that a file of the data directory keeps, readable to its owner alone; made now if there is none. */
export function keptKey({ path }: DataDirectory, key: KeyFile): string {
  try {
    const kept = readKey(key)
    if (kept !== undefined) return kept
    const made = key.make()
    if (createFile(key.file, { text: `${made}\n`, mode: 0o600 })) return made
    // Another process was first: there is one key, and it is that one's.
    return readKey(key) ?? made
  } catch (error) {
    throw unusable(error, path)
  }
}

function readKey({ file, isSound, fault }: KeyFile): string | undefined {
  const text = readText(file)?.trim()
  if (text === undefined || isSound(text)) return text
  throw new ServiceError('data_directory_unusable', `${file} ${fault}`)
}

function readText(file: string): string | undefined {
  try {
    return readFileSync(file, 'utf8')
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return undefined
    throw error
  }
}
