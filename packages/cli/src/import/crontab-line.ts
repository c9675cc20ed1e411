/** One line of a crontab. */
export type CrontabLine =
  | { readonly kind: 'blank' }
  | { readonly kind: 'comment'; readonly text: string }
  | { readonly kind: 'variable'; readonly name: string; readonly value: string }
  | { readonly kind: 'entry'; readonly expression: string; readonly command: string; readonly stdin: string | null }
  | { readonly kind: 'unreadable'; readonly reason: string }

const VARIABLE = /^("[^"]+"|'[^']+'|[A-Za-z_]\w*)\s*=\s*(.*)$/
const MACRO = /^(@\w+)\s+(\S.*)$/
const FIELDS = /^(\S+(?:\s+\S+){4})\s+(\S.*)$/

const FIELDS_REASON = 'expected five time fields or a macro such as @daily, and a command, got another line'

/** TIME_FIELD matches a time field but no program name: `*`, `1-5`, `0/15`, `?`, `MON-FRI`, `2026`. */
const DAY = '(?:sun|mon|tue|wed|thu|fri|sat)'
const TIME_FIELD = new RegExp(`^(?:[\\d*?][\\d*/,?#LW-]*|${DAY}(?:[-,#]${DAY})*)$`, 'i')

export function readCrontabLine(line: string): CrontabLine {
  const text = line.trim()
  if (text === '') return { kind: 'blank' }
  if (text.startsWith('#')) return { kind: 'comment', text: text.replace(/^#+\s*/, '') }
  const variable = VARIABLE.exec(text)
  if (variable !== null) return { kind: 'variable', name: unquote(variable[1]), value: unquote(variable[2]) }
  const [, time, rest = ''] = MACRO.exec(text) ?? FIELDS.exec(text) ?? []
  if (time === undefined) return { kind: 'unreadable', reason: FIELDS_REASON }
  const expression = time.replace(/\s+/g, ' ')
  const extra = expression.startsWith('@') ? [] : extraFields(rest)
  if (extra.length > 0) return { kind: 'unreadable', reason: tooManyFields([...expression.split(' '), ...extra]) }
  return { kind: 'entry', expression, ...splitStdin(rest) }
}

/** The time fields after the fifth, which cron would run as the command. Other schedulers have fields for seconds and years. */
function extraFields(command: string): string[] {
  const words = command.split(/\s+/)
  const count = words.findIndex((word) => !TIME_FIELD.test(word))
  return words.slice(0, count === -1 ? words.length : count)
}

function tooManyFields(fields: readonly string[]): string {
  const got = `${fields.length} fields (${fields.join(' ')})`
  return `expected five time fields and a command, got ${got}: remove the fields for seconds and years`
}

/** In cron an unescaped `%` ends the command. The rest is its standard input, where further `%` are line breaks. */
function splitStdin(text: string): { command: string; stdin: string | null } {
  const [command = '', ...lines] = text.split(/(?<!\\)%/).map((part) => part.replaceAll('\\%', '%'))
  return { command: command.trim(), stdin: lines.length === 0 ? null : lines.join('\n') }
}

function unquote(text = ''): string {
  return text.trim().replace(/^(["'])(.*)\1$/, '$2')
}

/** Users that the lines of `/etc/crontab` often name. None of them is the name of a program. */
const COMMON_USERS = ['root', 'www-data', 'nobody', 'daemon', 'ubuntu']

/** Programs that run the command after them. Without this list they would look like users. */
const WRAPPERS = 'sudo doas nice ionice time timeout env exec nohup setsid chronic cronic run-one command'.split(' ')

/** True if a command begins with a user, as in `/etc/crontab`: one of the common users, or any name before curl or wget. */
export function beginsWithUser(first: string, second: string | undefined): boolean {
  if (second === undefined) return false
  const isCall = /^(?:\S*\/)?(?:curl|wget)$/.test(second)
  const isName = /^[a-z_][\w-]*$/.test(first) && !WRAPPERS.includes(first) && !/^(?:curl|wget)$/.test(first)
  return COMMON_USERS.includes(first) || (isCall && isName)
}
