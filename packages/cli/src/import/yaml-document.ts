import type { Document } from 'yaml'

import { CliError } from '../cli-error.ts'
import { itemsOf, messageOf, readItems } from './documents.ts'
import type { ImportFile } from './import-entry.ts'

/** So many schedules may share what stands once. A file whose aliases multiply beyond it is made to exhaust whoever reads it. */
const ALIASES_MAX = 10_000

/** As JSON, in YAML 1.2 with merge keys (`<<`). The line of each schedule is known. */
export async function parseYaml(text: string): Promise<ImportFile> {
  const { isMap, isNode, isSeq, LineCounter, parseDocument } = await import('yaml')
  const lineCounter = new LineCounter()
  const document = refusing(() => parseDocument(text, { lineCounter, merge: true }))
  const [fault] = document.errors
  if (fault !== undefined) throw notYaml(fault)
  const { contents } = document
  const list = isMap(contents) && contents.has('schedules') ? contents.get('schedules', true) : contents
  const places = isSeq(list)
    ? list.items.map((item) => `line ${lineCounter.linePos(isNode(item) ? (item.range?.[0] ?? 0) : 0).line}`)
    : []
  const items = itemsOf(refusing(() => valueOf(document)))
  return readItems(items.map(({ place, value }, index) => ({ place: places[index] ?? place, value })))
}

/** Some faults show only when aliases and merge keys are followed. */
function valueOf(document: Document.Parsed): unknown {
  const value: unknown = document.toJS({ maxAliasCount: ALIASES_MAX })
  // What contains itself is YAML, but could not be sent.
  JSON.stringify(value)
  return value
}

function refusing<Result>(read: () => Result): Result {
  try {
    return read()
  } catch (error) {
    throw notYaml(error)
  }
}

function notYaml(error: unknown): CliError {
  const [reason = ''] = messageOf(error).split('\n')
  return new CliError('file_invalid', `expected YAML: ${reason}`, { cause: error })
}
