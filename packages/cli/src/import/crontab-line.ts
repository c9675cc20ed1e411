/** What one line of a crontab is. */
export type CrontabLine =
  | { readonly kind: 'blank' }
  | { readonly kind: 'comment'; readonly text: string }
  | { readonly kind: 'variable'; readonly name: string; readonly value: string }
  | { readonly kind: 'entry'; readonly expression: string; readonly command: string; readonly stdin: string | null }
  | { readonly kind: 'unreadable'; readonly reason: string }

const VARIABLE = /^("[^"]+"|'[^']+'|[A-Za-z_]\w*)\s*=\s*(.*)$/
const MACRO = /^(@\w+)\s+(\S.*)$/
const FIELDS = /^(\S+(?:\s+\S+){4})\s+(\S.*)$/

const FIELDS_REASON = 'expected five fields or a macro such as @daily, and a command'

/** What can be a field of a time, and is no name of a program: `*`, `1-5`, `0/15`, `?`, `MON-FRI`, `2026`. */
const DAY = '(?:sun|mon|tue|wed|thu|fri|sat)'
const TIME_FIELD = new RegExp(`^(?:[\\d*?][\\d*/,?#LW-]*|${DAY}(?:[-,#]${DAY})*)$`, 'i')

export function readCrontabLine(line: string): CrontabLine {
  const text = line.trim()
  if (text === '') return { kind: 'blank' }
  if (text.startsWith('#')) return { kind: 'comment', text: text.replace(/^#+\s*/, '') }
  const variable = VARIABLE.exec(text)
  if (variable !== null) return { kind: 'variable', name: unquoted(variable[1]), value: unquoted(variable[2]) }
  const [, time, rest = ''] = MACRO.exec(text) ?? FIELDS.exec(text) ?? []
  if (time === undefined) return { kind: 'unreadable', reason: FIELDS_REASON }
  const expression = time.replace(/\s+/g, ' ')
  const more = expression.startsWith('@') ? [] : moreFields(rest)
  if (more.length > 0) return { kind: 'unreadable', reason: tooManyFields([...expression.split(' '), ...more]) }
  return { kind: 'entry', expression, ...splitStdin(rest) }
}

/** Fields where the command should begin: other schedulers have one for seconds, and one for years. */
function moreFields(command: string): string[] {
  const words = command.split(/\s+/)
  const count = words.findIndex((word) => !TIME_FIELD.test(word))
  return words.slice(0, count === -1 ? words.length : count)
}

function tooManyFields(fields: readonly string[]): string {
  const got = `${fields.length} fields (${fields.join(' ')})`
  return `expected five fields and a command, got ${got}: take out those of seconds and years`
}

/** In cron an unescaped `%` ends the command: what follows is its standard input, further ones are line breaks. */
function splitStdin(text: string): { command: string; stdin: string | null } {
  const [command = '', ...lines] = text.split(/(?<!\\)%/).map((part) => part.replaceAll('\\%', '%'))
  return { command: command.trim(), stdin: lines.length === 0 ? null : lines.join('\n') }
}

function unquoted(text = ''): string {
  return text.trim().replace(/^(["'])(.*)\1$/, '$2')
}
