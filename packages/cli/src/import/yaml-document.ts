import { messageOf } from '@carillon/api'
import type { Document } from 'yaml'

import { CliError } from '../process/cli-error.ts'
import { itemsOf, readItems } from './documents.ts'
import type { ImportFile } from './import-entry.ts'

/**
 * The most alias expansions in a file; a file with more is refused. It is enough for schedules that share parts by alias. More is
 * an attack: aliases that multiply until memory runs out.
 */
const ALIASES_MAX = 10_000

/** Reads what `parseJson` reads, in YAML 1.2 with merge keys (`<<`). The place of an entry is its line. */
export async function parseYaml(text: string): Promise<ImportFile> {
  const { isMap, isNode, isSeq, LineCounter, parseDocument } = await import('yaml')
  const lineCounter = new LineCounter()
  const document = orNotYaml(() => parseDocument(text, { lineCounter, merge: true }))
  const [fault] = document.errors
  if (fault !== undefined) throw notYaml(fault)
  const { contents } = document
  const list = isMap(contents) && contents.has('schedules') ? contents.get('schedules', true) : contents
  const places = isSeq(list)
    ? list.items.map((item) => `line ${lineCounter.linePos(isNode(item) ? (item.range?.[0] ?? 0) : 0).line}`)
    : []
  const items = itemsOf(orNotYaml(() => valueOf(document)))
  return readItems(items.map(({ place, value }, index) => ({ place: places[index] ?? place, value })))
}

/** Resolves aliases and merge keys, which can fail. */
function valueOf(document: Document.Parsed): unknown {
  const value: unknown = document.toJS({ maxAliasCount: ALIASES_MAX })
  // A value that contains itself is valid YAML but cannot be sent as JSON.
  JSON.stringify(value)
  return value
}

function orNotYaml<Result>(read: () => Result): Result {
  try {
    return read()
  } catch (error) {
    throw notYaml(error)
  }
}

function notYaml(error: unknown): CliError {
  const [reason = ''] = messageOf(error).split('\n')
  return new CliError('file_invalid', `expected YAML, got a text that cannot be read: ${reason}`, { cause: error })
}
