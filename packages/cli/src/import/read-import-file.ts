import { parseCrontab, type CrontabOptions } from './crontab.ts'
import { parseJson, parseNdjson } from './documents.ts'
import type { ImportFile } from './import-entry.ts'
import { detectFormat, type ImportFormat } from './import-format.ts'
import { parseYaml } from './yaml-document.ts'

interface ReadOptions {
  readonly format?: ImportFormat | undefined
  readonly hookUrl?: string | undefined
  readonly timezone?: string | undefined
  /** Of this machine: what its cron goes by. */
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

/** A crontab that names no zone means that of its machine, which is not written in it. */
function readCrontab(text: string, { hookUrl, timezone, machineTimezone }: ReadOptions): ImportFile {
  const options: CrontabOptions = { hookUrl, timezone: timezone ?? machineTimezone }
  const file = parseCrontab(text, options)
  const isGuessed = timezone === undefined && !/^\s*(CRON_)?TZ\s*=/m.test(text) && file.entries.length > 0
  if (!isGuessed) return file
  const note = `no time zone is given: taken as ${machineTimezone}, that of this machine; --timezone says another`
  return { ...file, notes: [note, ...file.notes] }
}
