import type { Violation } from './violation.ts'
import type { Workspace } from './workspace.ts'

const BUCKETS = /\/(utils?|helpers?|lib|common|misc|shared|types)(\/|\.tsx?$)/

/** No buckets: a name that says nothing about its content collects everything. */
export function checkFileNames({ files }: Workspace): Violation[] {
  return files
    .keys()
    .filter((path) => BUCKETS.test(`/${path}`))
    .map((file) => ({ rule: 'bucket', file, line: 1, message: 'name the file after what it holds' }))
    .toArray()
}
