import { randomBytes } from 'node:crypto'
import { closeSync, fsyncSync, linkSync, openSync, renameSync, rmSync, writeSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'

import { codeOf } from './service-error.ts'

/** Begins the name of a file that is being written. One that is left behind is of a process that died; it means nothing. */
export const UNFINISHED_PREFIX = '.unfinished-'

interface FileContent {
  readonly text: string
  readonly mode: number
}

/** After a crash at any moment, the file is as it was before or as it should be. */
export function replaceFile(path: string, content: FileContent): void {
  inUnfinishedFile(path, content, (unfinished) => renameSync(unfinished, path))
}

/** Makes a file that is whole from its first moment; false if there is one already, which is left as it is. */
export function createFile(path: string, content: FileContent): boolean {
  return inUnfinishedFile(path, content, (unfinished) => {
    try {
      // Unlike a rename, a link never takes another's place: of two processes that start at once, one comes first.
      linkSync(unfinished, path)
      return true
    } catch (error) {
      if (codeOf(error) === 'EEXIST') return false
      throw error
    }
  })
}

function inUnfinishedFile<Result>(path: string, { text, mode }: FileContent, place: (path: string) => Result): Result {
  const unfinished = join(dirname(path), `${UNFINISHED_PREFIX}${basename(path)}-${randomBytes(6).toString('hex')}`)
  try {
    const file = openSync(unfinished, 'wx', mode)
    try {
      writeSync(file, text)
      fsyncSync(file)
    } finally {
      closeSync(file)
    }
    return place(unfinished)
  } finally {
    rmSync(unfinished, { force: true })
  }
}
