import { formatRelative } from '../output/format-time.ts'
import { isHttpTarget, targetText } from '../output/schedule-view.ts'
import { tableLines } from '../output/table.ts'
import type { Screen } from '../output/terminal.ts'
import { escapeControls } from '../output/text.ts'
import type { CheckedEntry } from './check-entries.ts'
import type { ExistingEntry } from './existing-schedules.ts'
import type { CreatedEntry, ImportEntry, RefusedEntry } from './import-entry.ts'

interface Others {
  readonly existing: readonly ExistingEntry[]
  readonly refused: readonly RefusedEntry[]
  readonly notes: readonly string[]
}

/** What an import would do. */
export interface ImportPlan extends Others {
  readonly checked: readonly CheckedEntry[]
}

/** What an import did. */
export interface ImportOutcome extends Others {
  readonly created: readonly CreatedEntry[]
}

export function planJson({ checked, ...others }: ImportPlan): object {
  const wouldCreate = checked.map(({ entry, description, nextSlotAt }) => ({
    ...namedJson(entry),
    description,
    nextSlotAt,
    schedule: entry.input,
  }))
  return { wouldCreate, ...othersJson(others) }
}

export function outcomeJson({ created, ...others }: ImportOutcome): object {
  const named = created.map(({ entry, scheduleId }) => ({ ...namedJson(entry), id: scheduleId }))
  return { created: named, ...othersJson(others) }
}

function othersJson({ existing, refused, notes }: Others): object {
  const named = existing.map(({ entry, scheduleId, likeness }) => ({
    ...namedJson(entry),
    id: scheduleId,
    isSame: likeness === 'same',
  }))
  return { existing: named, refused, notes }
}

function namedJson({ place, input }: ImportEntry): { place: string; name: string } {
  return { place, name: input.name }
}

export function planLines(screen: Screen, { checked, existing, refused }: ImportPlan, now: number): string[] {
  const table = tableLines(
    screen,
    [
      { title: 'WHERE', of: ({ entry }) => entry.place },
      { title: 'NAME', of: ({ entry }) => entry.input.name, shrinksTo: 12 },
      { title: 'WHEN', of: ({ description }) => description, shrinksTo: 12 },
      { title: 'NEXT', of: ({ nextSlotAt }) => (nextSlotAt === null ? 'never' : formatRelative(nextSlotAt, now)) },
      { title: 'TARGET', of: ({ entry: { input } }) => shortTarget(input.target), shrinksTo: 12 },
    ],
    checked,
  )
  const counts = `${checked.length} would be created, ${existing.length} already exist, ${refused.length} refused`
  return [...table, ...existing.map(existingLine), ...refused.map(refusedLine), counts]
}

function shortTarget(target: ImportEntry['input']['target']): string {
  return isHttpTarget(target) ? targetText(target) : target.kind
}

export function outcomeLines({ created, existing, refused }: ImportOutcome): string[] {
  return [
    ...existing.filter(({ likeness }) => likeness !== 'same').map(existingLine),
    ...refused.map(refusedLine),
    `${created.length} created, ${existing.length} already exist, ${refused.length} refused`,
  ]
}

const LIKENESS_TEXTS: Readonly<Record<ExistingEntry['likeness'], string>> = {
  same: 'already exists',
  unfinished: 'already exists, from an unfinished import: importing the file again completes it',
  different: 'a schedule with this name already exists and may differ: it is not changed',
}

function existingLine({ entry, likeness }: ExistingEntry): string {
  return escapeControls(`${entry.place}: "${entry.input.name}": ${LIKENESS_TEXTS[likeness]}`)
}

function refusedLine({ place, name, reason }: RefusedEntry): string {
  return escapeControls(name === null ? `${place}: refused: ${reason}` : `${place}: "${name}": refused: ${reason}`)
}
