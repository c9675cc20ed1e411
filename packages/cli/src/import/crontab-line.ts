/** What one line of a crontab is. */
export type CrontabLine =
  | { readonly kind: 'blank' }
  | { readonly kind: 'comment'; readonly text: string }
  | { readonly kind: 'variable'; readonly name: string; readonly value: string }
  | { readonly kind: 'entry'; readonly expression: string; readonly command: string; readonly stdin: string | null }
  | { readonly kind: 'unreadable' }

const VARIABLE = /^("[^"]+"|'[^']+'|[A-Za-z_]\w*)\s*=\s*(.*)$/
const MACRO = /^(@\w+)\s+(\S.*)$/
const FIELDS = /^(\S+(?:\s+\S+){4})\s+(\S.*)$/

export function readCrontabLine(line: string): CrontabLine {
  const text = line.trim()
  if (text === '') return { kind: 'blank' }
  if (text.startsWith('#')) return { kind: 'comment', text: text.replace(/^#+\s*/, '') }
  const variable = VARIABLE.exec(text)
  if (variable !== null) return { kind: 'variable', name: unquoted(variable[1]), value: unquoted(variable[2]) }
  const entry = MACRO.exec(text) ?? FIELDS.exec(text)
  if (entry === null) return { kind: 'unreadable' }
  return { kind: 'entry', expression: (entry[1] ?? '').replace(/\s+/g, ' '), ...splitStdin(entry[2] ?? '') }
}

/** In cron an unescaped `%` ends the command: what follows is its standard input, further ones are line breaks. */
function splitStdin(text: string): { command: string; stdin: string | null } {
  const [command = '', ...lines] = text.split(/(?<!\\)%/).map((part) => part.replaceAll('\\%', '%'))
  return { command: command.trim(), stdin: lines.length === 0 ? null : lines.join('\n') }
}

function unquoted(text = ''): string {
  return text.trim().replace(/^(["'])(.*)\1$/, '$2')
}
