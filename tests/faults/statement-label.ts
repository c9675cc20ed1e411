import { createHash } from 'node:crypto'

const SHORT_TEXT = 64
const LABEL_MAX = 92
const KEPT = new Map<string, string>()

/**
 * A readable name for a statement: its CTEs, then the tables that it writes and reads. Texts that differ only in whitespace, comments,
 * literals or the length of a parameter list get the same label. Other texts differ by a short hash.
 */
export function labelOf(text: string): string {
  const known = KEPT.get(text)
  if (known !== undefined) return known
  const label = makeLabel(normalise(text))
  KEPT.set(text, label)
  return label
}

/** True if the statement itself inserts, updates or deletes rows; locking rows is not writing. */
export function isWriting(text: string): boolean {
  return /\b(?:insert into|delete from|update (?!of\b|skip\b|nowait\b)\S+\s+(?:as \S+\s+)?set\b)/.test(normalise(text))
}

function normalise(text: string): string {
  return text
    .replace(/--[^\n]*/g, ' ')
    .replace(/\/\*.*?\*\//gs, ' ')
    .replace(/'(?:[^']|'')*'/g, '?')
    .replace(/\$\d+/g, '$')
    .replace(/(?<![\w$?])\d{2,}(?:\.\d+)?/g, '?')
    .replace(/\s+/g, ' ')
    .replace(/(?<item>[$?](?:::[\w.[\]]+)?)(?:, ?\k<item>)+/g, '$<item>, …')
    .trim()
    .toLowerCase()
}

function makeLabel(text: string): string {
  if (text.length <= SHORT_TEXT) return text.replace(/;$/, '')
  const ctes = namesOf(text, /(?:\bwith(?: recursive)?|\),) (\w+)(?:\([^)]*\))? as (?:(?:not )?materialized )?\(/g)
  const parts = [
    listed('insert', namesOf(text, /insert into ([\w".]+)/g)),
    listed('update', namesOf(text, /\bupdate (?!of\b|skip\b|nowait\b)(?:only )?([\w".]+) (?:as \w+ )?set\b/g)),
    listed('delete', namesOf(text, /delete from ([\w".]+)/g)),
    listed('call', namesOf(text, /\b(carillon\w*\.\w+)\(/g)),
  ]
  const written = new Set(parts.flatMap((part) => part?.names ?? []))
  const read = namesOf(text, /(?:\bfrom|\bjoin) (?:lateral )?(carillon\w*\.\w+|pg_\w+)/g)
  const reads = listed(
    'read',
    read.filter((name) => !written.has(name)),
  )
  const told = [...parts, reads].flatMap((part) => (part === null ? [] : [part.text]))
  const what = told.length === 0 ? text : told.join(', ')
  const label = `${ctes.length === 0 ? '' : `with ${ctes.join(' ')}: `}${what}`
  const hash = createHash('sha256').update(text).digest('hex').slice(0, 4)
  return `${label.length > LABEL_MAX ? `${label.slice(0, LABEL_MAX - 1)}…` : label} #${hash}`
}

function namesOf(text: string, pattern: RegExp): string[] {
  const names = [...text.matchAll(pattern)].map(([, name = '']) => name.replace(/^carillon\./, '').replaceAll('"', ''))
  return [...new Set(names)]
}

function listed(verb: string, names: readonly string[]): { names: readonly string[]; text: string } | null {
  return names.length === 0 ? null : { names, text: `${verb} ${names.join(' ')}` }
}
