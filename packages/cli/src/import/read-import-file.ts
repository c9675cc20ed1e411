import { parseCrontab, type CommandHook } from './crontab.ts'
import { parseJson, parseNdjson } from './documents.ts'
import type { ImportFile } from './import-entry.ts'
import { parseYaml } from './yaml-document.ts'

export const IMPORT_FORMATS = ['json', 'ndjson', 'yaml', 'crontab'] as const

export type ImportFormat = (typeof IMPORT_FORMATS)[number]

interface ReadOptions {
  readonly format?: ImportFormat | undefined
  /** What receives the commands of a crontab. */
  readonly hook?: CommandHook | undefined
  readonly timezone?: string | undefined
  /** The time zone of this machine. Its cron daemon reads a crontab in that zone unless the crontab names another. */
  readonly machineTimezone: string
}

export async function readImportFile(path: string, text: string, options: ReadOptions): Promise<ImportFile> {
  switch (options.format ?? detectFormat(path, text)) {
    case 'json':
      return parseJson(text)
    case 'ndjson':
      return parseNdjson(text)
    case 'yaml':
      return parseYaml(text)
    case 'crontab':
      return readCrontab(text, options)
  }
}

/** A crontab that names no time zone is in that of its machine. The CLI assumes the zone of this machine and notes it. */
function readCrontab(text: string, { hook, timezone, machineTimezone }: ReadOptions): ImportFile {
  const file = parseCrontab(text, { hook, timezone: timezone ?? machineTimezone })
  const isGuessed = timezone === undefined && !/^\s*(CRON_)?TZ\s*=/m.test(text) && file.entries.length > 0
  if (!isGuessed) return file
  const note = `the crontab names no time zone: using ${machineTimezone}, the zone of this machine; --timezone sets another`
  return { ...file, notes: [note, ...file.notes] }
}

const FORMAT_BY_EXTENSION: ReadonlyMap<string, ImportFormat> = new Map([
  ['ndjson', 'ndjson'],
  ['jsonl', 'ndjson'],
  ['yaml', 'yaml'],
  ['yml', 'yaml'],
  ['cron', 'crontab'],
  ['crontab', 'crontab'],
])

/** The format of a file: by its extension if that is known, otherwise by its first characters. */
export function detectFormat(path: string, text: string): ImportFormat {
  const extension = /[^/\\]*?\.?([^./\\]+)$/.exec(path.toLowerCase())?.[1] ?? ''
  const known = FORMAT_BY_EXTENSION.get(extension)
  if (known !== undefined) return known
  const start = text.trimStart()
  if (!/^[[{]/.test(start)) return extension === 'json' ? 'json' : 'crontab'
  return isNdjson(start) ? 'ndjson' : 'json'
}

/** True for several lines of which the first is a whole object. A single object is JSON. */
function isNdjson(text: string): boolean {
  const [first = '', ...rest] = text.split(/\r?\n/).filter((line) => line.trim() !== '')
  return rest.length > 0 && isObjectJson(first)
}

function isObjectJson(line: string): boolean {
  try {
    return line.trimStart().startsWith('{') && typeof JSON.parse(line) === 'object'
  } catch {
    return false
  }
}
