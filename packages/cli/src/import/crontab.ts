import type { ScheduleInput } from '@carillon/api'

import { cutText } from '../output/cut-text.ts'
import { readCrontabLine, type CrontabLine } from './crontab-line.ts'
import { translateCurl } from './curl-command.ts'
import type { Translated } from './http-call.ts'
import type { ImportEntry, ImportFile, Refusal } from './import-entry.ts'
import { splitShellWords } from './shell-words.ts'
import { isUser, userReason } from './system-crontab.ts'
import { UniqueNames } from './unique-names.ts'
import { translateWget } from './wget-command.ts'

export interface CrontabOptions {
  /** Until a line says `CRON_TZ=` or `TZ=`. */
  readonly timezone: string
  /** Receives the commands that are no HTTP call; without it they are refused. */
  readonly hookUrl?: string | undefined
}

type Entry = Extract<CrontabLine, { kind: 'entry' }>

const NAME_COLUMNS = 60
const ZONE_VARIABLES = ['CRON_TZ', 'TZ']
const REBOOT_REASON =
  '@reboot names no time: nothing comes due when a machine starts. Let its service manager do it, and take the line out'
const HOOK_ADVICE = 'translate it yourself, or pass --url with a hook that runs the commands it is sent'

/** A user's crontab as schedules: calls of curl and wget as they are, other commands as calls of a hook. */
export function parseCrontab(text: string, { timezone, hookUrl }: CrontabOptions): ImportFile {
  const entries: ImportEntry[] = []
  const refusals: Refusal[] = []
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
      const translated = translate(line, hookUrl)
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

/** A comment right above a line names it, unless it is a line that was commented out, or the usual header. */
function nameIn(comment: string): string | null {
  const text = comment.replace(/^name:\s*/i, '')
  const isHeader = /^m\s+h\s+dom\s+mon\s+dow\b/.test(text)
  const isEntry = /^(?:@\w+\s+\S|(?:[\d*][\d*/,-]*\s+){2}(?:\S+\s+){3}\S)/.test(text)
  return text === '' || isHeader || isEntry || !/\p{Letter}/u.test(text) ? null : cutText(text, NAME_COLUMNS)
}

function translate(entry: Entry, hookUrl: string | undefined): Translated {
  if (entry.expression.toLowerCase() === '@reboot') return { ok: false, reason: REBOOT_REASON }
  const { words, outputs, shellOnly } = splitShellWords(entry.command)
  const [program = '', ...rest] = words
  const name = program.replace(/^.*\//, '')
  if (isUser(program, rest[0])) return { ok: false, reason: userReason(program) }
  if (shellOnly === null && (name === 'curl' || name === 'wget')) {
    const translated = name === 'curl' ? translateCurl(rest) : translateWget(rest)
    return translated.ok ? { ...translated, notes: [...translated.notes, ...callNotes(entry, outputs)] } : translated
  }
  if (hookUrl !== undefined) return callHook(entry, hookUrl)
  const what = shellOnly === null ? program : `a command that needs a shell (${shellOnly})`
  return { ok: false, reason: `expected a call of curl or wget, got ${what}: ${HOOK_ADVICE}` }
}

function callNotes({ stdin }: Entry, outputs: readonly string[]): string[] {
  const files = outputs.filter((file) => file !== '/dev/null')
  return [
    ...(stdin === null ? [] : ['what follows % is standard input in cron; the call has none, so it is left out']),
    ...files.map((file) => `the answer is kept in the ledger, not in ${file}`),
  ]
}

function callHook({ command, stdin }: Entry, url: string): Translated {
  const payload = { command, ...(stdin === null ? {} : { stdin }) }
  const target: ScheduleInput['target'] = { kind: 'http', url, method: 'POST', payload }
  const notes = stdin === null ? [] : ['what follows % is standard input in cron; the hook is sent it as stdin']
  return { ok: true, content: { target }, notes }
}
