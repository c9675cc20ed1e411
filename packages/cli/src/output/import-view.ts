import type { CheckedEntry } from '../import/check-entries.ts'
import type { ExistingEntry } from '../import/finish-entries.ts'
import type { ImportEntry, Refusal } from '../import/import-entry.ts'
import type { MadeEntry } from '../import/made-entry.ts'
import { formatRelative } from './format-time.ts'
import { harmlessText } from './harmless-text.ts'
import { tableLines } from './table.ts'
import type { Terminal } from './terminal.ts'

interface Rest {
  readonly existing: readonly ExistingEntry[]
  readonly refused: readonly Refusal[]
  readonly notes: readonly string[]
}

/** What an import would do. */
export interface ImportPlan extends Rest {
  readonly checked: readonly CheckedEntry[]
}

/** What an import did. */
export interface ImportOutcome extends Rest {
  readonly created: readonly MadeEntry[]
}

export function planAnswer({ checked, ...rest }: ImportPlan): object {
  const wouldCreate = checked.map(({ entry, description, nextSlotAt }) => ({
    ...named(entry),
    description,
    nextSlotAt,
    schedule: entry.input,
  }))
  return { wouldCreate, ...restAnswer(rest) }
}

export function outcomeAnswer({ created, ...rest }: ImportOutcome): object {
  return { created: created.map(({ entry, scheduleId }) => ({ ...named(entry), id: scheduleId })), ...restAnswer(rest) }
}

function restAnswer({ existing, refused, notes }: Rest): object {
  const there = existing.map(({ entry, scheduleId, likeness }) => ({
    ...named(entry),
    id: scheduleId,
    isSame: likeness === 'same',
  }))
  return { existing: there, refused, notes }
}

export function planLines(terminal: Terminal, { checked, existing, refused }: ImportPlan, now: number): string[] {
  const table = tableLines(
    terminal,
    [
      { title: 'WHERE', of: ({ entry }) => entry.place },
      { title: 'NAME', of: ({ entry }) => entry.input.name, shrinksTo: 12 },
      { title: 'WHEN', of: ({ description }) => description, shrinksTo: 12 },
      { title: 'NEXT', of: ({ nextSlotAt }) => (nextSlotAt === null ? 'never' : formatRelative(nextSlotAt, now)) },
      { title: 'WHAT', of: ({ entry }) => targetText(entry), shrinksTo: 12 },
    ],
    checked,
  )
  const counts = `${checked.length} would be created, ${existing.length} already there, ${refused.length} refused`
  return [...table, ...existing.map(existingLine), ...refused.map(refusedLine), counts]
}

export function outcomeLines({ created, existing, refused }: ImportOutcome): string[] {
  return [
    ...existing.filter(({ likeness }) => likeness !== 'same').map(existingLine),
    ...refused.map(refusedLine),
    `${created.length} created, ${existing.length} already there, ${refused.length} refused`,
  ]
}

function named({ place, input }: ImportEntry): { place: string; name: string } {
  return { place, name: input.name }
}

const LIKENESS_TEXTS: Readonly<Record<ExistingEntry['likeness'], string>> = {
  same: 'is there already',
  unfinished: 'is there already, made by an import that broke off: importing it again finishes it',
  different: 'a schedule of this name is there, which may differ: it stays as it is',
}

function existingLine({ entry, likeness }: ExistingEntry): string {
  return harmlessText(`${entry.place}: "${entry.input.name}": ${LIKENESS_TEXTS[likeness]}`)
}

function refusedLine({ place, name, reason }: Refusal): string {
  return harmlessText(name === null ? `${place}: refused: ${reason}` : `${place}: "${name}": refused: ${reason}`)
}

function targetText({ input }: ImportEntry): string {
  const { kind, url, method } = input.target as {
    readonly kind: string
    readonly url?: string
    readonly method?: string
  }
  return kind === 'http' ? `${method ?? 'POST'} ${url ?? ''}` : kind
}
