import type { Violation } from './violation.ts'
import type { Workspace } from './workspace.ts'

const BUCKETS = /\/(utils?|helpers?|lib|common|misc|shared|types)(\/|\.tsx?$)/

/** Refuses a name such as `utils` or `common`: a name that tells nothing about the content attracts unrelated code. */
export function checkFileNames({ files }: Workspace): Violation[] {
  return files
    .keys()
    .filter((path) => BUCKETS.test(`/${path}`))
    .map((file) => ({ rule: 'bucket', file, line: 1, message: 'name the file after what it holds' }))
    .toArray()
}
