import { posix } from 'node:path'

import { SMALL_FILE_LINES } from './arrows.ts'
import type { Violation } from './violation.ts'
import type { SourceFile, Workspace } from './workspace.ts'

/**
 * A small file with one importer belongs into its importer: a reader would have to open both to understand either. Exempt are the
 * `clock.ts` of a package, because no other file may read the clock, and the public files of a package.
 */
export function checkSmallFiles({ files }: Workspace): Violation[] {
  const importers = Map.groupBy(
    [...files.values()]
      .filter((file) => !file.isTest)
      .flatMap((file) => [...new Set(file.imports.map(({ target }) => target))].map((target) => ({ target, file }))),
    ({ target }) => target,
  )
  return [...files.values()].flatMap((file) => {
    const [first, ...others] = importers.get(file.path) ?? []
    if (first === undefined || others.length > 0 || isExempt(file)) return []
    const message = `${file.lineCount} lines for ${first.file.path} alone: move them there`
    return [{ rule: 'small-file', file: file.path, line: 1, message }]
  })
}

function isExempt(file: SourceFile): boolean {
  return (
    file.isTest ||
    file.lineCount >= SMALL_FILE_LINES ||
    posix.basename(file.path) === 'clock.ts' ||
    file.package.exports.values().some((path) => path === file.path)
  )
}
