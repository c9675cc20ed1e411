import type { ScheduleInput } from '@carillon/api'

import { cutText } from '../output/text.ts'
import { beginsWithUser, readCrontabLine, type CrontabLine } from './crontab-line.ts'
import type { Translated } from './http-call.ts'
import { translateCurl, translateWget } from './http-commands.ts'
import type { ImportEntry, ImportFile, RefusedEntry } from './import-entry.ts'
import { splitShellWords } from './shell-words.ts'

interface CrontabOptions {
  /** The time zone of the lines before the first `CRON_TZ=` or `TZ=`. */
  readonly timezone: string
  /** What receives every command other than curl and wget. Without it such commands are refused. */
  readonly hook?: CommandHook | undefined
}

/** A URL, or a target in whose texts `{command}` becomes the command. */
export type CommandHook = string | ScheduleInput['target']

type Entry = Extract<CrontabLine, { kind: 'entry' }>

const NAME_COLUMNS = 60
const ZONE_VARIABLES = ['CRON_TZ', 'TZ']
const REBOOT_REASON =
  'expected a time, got @reboot: a schedule does not start with a machine; use its service manager, and remove the line'
const HOOK_ADVICE = 'rewrite it, or pass --url with a hook that runs the commands it receives, or --target-json'
const USER_ADVICE = 'this looks like a system crontab, whose sixth field is a user: remove the user'

/** Reads a user's crontab. Calls of curl and wget become HTTP targets; other commands are sent to a hook. */
export function parseCrontab(text: string, { timezone, hook }: CrontabOptions): ImportFile {
  const entries: ImportEntry[] = []
  const refusals: RefusedEntry[] = []
  const notes: string[] = []
  const names = new UniqueNames()
  let zone = timezone
  let comment: string | null = null
  for (const [index, content] of text.split(/\r?\n/).entries()) {
    const place = `line ${index + 1}`
    const line = readCrontabLine(content)
    if (line.kind === 'variable' && ZONE_VARIABLES.includes(line.name)) zone = line.value
    else if (line.kind === 'variable') notes.push(`${place}: ${line.name} is ignored: a schedule has no environment`)
    else if (line.kind === 'unreadable') refusals.push({ place, name: null, reason: line.reason })
    else if (line.kind === 'entry') {
      const base = comment ?? cutText(line.command, NAME_COLUMNS)
      const translated = translate(line, hook)
      if (translated.ok) {
        const name = names.take(base)
        const cadence = { kind: 'cron' as const, expression: line.expression, timezone: zone }
        entries.push({ place, input: { name, cadence, ...translated.content }, pausedReason: null, skippedSlots: [] })
        notes.push(...translated.notes.map((note) => `${place}: ${note}`))
      } else refusals.push({ place, name: base, reason: translated.reason })
    }
    comment = line.kind === 'comment' ? nameIn(line.text) : null
  }
  return { entries, refusals, notes }
}

/** Makes names unique: the second `name` becomes `name (2)`. */
class UniqueNames {
  readonly #taken = new Set<string>()

  take(name: string): string {
    let unique = name
    for (let count = 2; this.#taken.has(unique); count++) unique = `${name} (${count})`
    this.#taken.add(unique)
    return unique
  }
}

/** The name that a comment gives to the entry below it. A disabled entry and the usual header of a crontab are no names. */
function nameIn(comment: string): string | null {
  const text = comment.replace(/^name:\s*/i, '')
  const isHeader = /^m\s+h\s+dom\s+mon\s+dow\b/.test(text)
  const isEntry = /^(?:@\w+\s+\S|(?:[\d*][\d*/,-]*\s+){2}(?:\S+\s+){3}\S)/.test(text)
  return text === '' || isHeader || isEntry || !/\p{Letter}/u.test(text) ? null : cutText(text, NAME_COLUMNS)
}

function translate(entry: Entry, hook: CommandHook | undefined): Translated {
  if (entry.expression.toLowerCase() === '@reboot') return { ok: false, reason: REBOOT_REASON }
  const { words, outputs, shellOnly } = splitShellWords(entry.command)
  const [program = '', ...rest] = words
  const name = program.replace(/^.*\//, '')
  if (beginsWithUser(program, rest[0])) {
    return { ok: false, reason: `expected a command after the time, got the user ${program}: ${USER_ADVICE}` }
  }
  if (shellOnly === null && (name === 'curl' || name === 'wget')) {
    const translated = name === 'curl' ? translateCurl(rest) : translateWget(rest)
    return translated.ok ? { ...translated, notes: [...translated.notes, ...callNotes(entry, outputs)] } : translated
  }
  if (hook !== undefined) return typeof hook === 'string' ? callUrl(entry, hook) : callTarget(entry, hook)
  const got = shellOnly === null ? program : `a command that needs a shell (${shellOnly})`
  return { ok: false, reason: `expected a call of curl or wget, got ${got}: ${HOOK_ADVICE}` }
}

function callNotes({ stdin }: Entry, outputs: readonly string[]): string[] {
  const files = outputs.filter((file) => file !== '/dev/null')
  return [
    ...(stdin === null ? [] : ['the text after % is standard input in cron; an HTTP call has none, so it is ignored']),
    ...files.map((file) => `the response is stored with the run, not in ${file}`),
  ]
}

function callUrl({ command, stdin }: Entry, url: string): Translated {
  const payload = { command, ...(stdin === null ? {} : { stdin }) }
  const target: ScheduleInput['target'] = { kind: 'http', url, method: 'POST', payload }
  const notes = stdin === null ? [] : ['the text after % is standard input in cron; the hook receives it as stdin']
  return { ok: true, content: { target }, notes }
}

function callTarget({ command, stdin }: Entry, hook: ScheduleInput['target']): Translated {
  const fill = (value: unknown): unknown => {
    if (typeof value === 'string') return value.replaceAll('{command}', () => command)
    if (Array.isArray(value)) return value.map(fill)
    if (typeof value !== 'object' || value === null) return value
    return Object.fromEntries(Object.entries(value).map(([name, each]) => [name, fill(each)]))
  }
  const notes =
    stdin === null ? [] : ['the text after % is standard input in cron; the target gets none, so it is ignored']
  return { ok: true, content: { target: fill(hook) as ScheduleInput['target'] }, notes }
}
