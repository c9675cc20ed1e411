export const IMPORT_FORMATS = ['json', 'ndjson', 'yaml', 'crontab'] as const

export type ImportFormat = (typeof IMPORT_FORMATS)[number]

const BY_EXTENSION: ReadonlyMap<string, ImportFormat> = new Map([
  ['ndjson', 'ndjson'],
  ['jsonl', 'ndjson'],
  ['yaml', 'yaml'],
  ['yml', 'yaml'],
  ['cron', 'crontab'],
  ['crontab', 'crontab'],
])

/** What a file is: by its name if that says it, otherwise by how it begins. */
export function detectFormat(path: string, text: string): ImportFormat {
  const extension = /[^/\\]*?\.?([^./\\]+)$/.exec(path.toLowerCase())?.[1] ?? ''
  const known = BY_EXTENSION.get(extension)
  if (known !== undefined) return known
  const start = text.trimStart()
  if (!/^[[{]/.test(start)) return extension === 'json' ? 'json' : 'crontab'
  // Objects one after the other are lines; a single one, or an array, is a document.
  return isLines(start) ? 'ndjson' : 'json'
}

function isLines(text: string): boolean {
  const [first = '', ...rest] = text.split(/\r?\n/).filter((line) => line.trim() !== '')
  return rest.length > 0 && isWholeObject(first)
}

function isWholeObject(line: string): boolean {
  try {
    return line.trimStart().startsWith('{') && typeof JSON.parse(line) === 'object'
  } catch {
    return false
  }
}
