import { canonicalJson, type Schedule } from '@carillon/api'

import type { Cli } from '../process/cli.ts'
import { ENTRY_CONCURRENCY, mapConcurrently } from './entry-batches.ts'
import { applyState, isUntouched, missingState } from './entry-state.ts'
import type { ImportEntry } from './import-entry.ts'
import { toPortable } from './portable-schedule.ts'

/**
 * `same`: the schedule has every value that the entry gives. `lacking`: the same, but its pause or skipped slots are missing.
 * `different`: it may be another schedule, or the same one written differently.
 */
type Likeness = 'same' | 'lacking' | 'different'

/** An entry and the existing schedule of the same name. */
export interface MatchedEntry {
  readonly entry: ImportEntry
  readonly schedule: Schedule
  readonly likeness: Likeness
}

interface Match {
  readonly matched: readonly MatchedEntry[]
  readonly missing: readonly ImportEntry[]
}

const MOST_ALIKE_FIRST: readonly Likeness[] = ['same', 'lacking', 'different']

/**
 * Finds the existing schedule of each entry by its exact name. If several have one name, the most alike are matched first and
 * the rest in order. An entry is missing only if the file has more entries of its name than there are schedules.
 */
export function matchExisting(entries: readonly ImportEntry[], schedules: readonly Schedule[], now: number): Match {
  const byName = Map.groupBy(schedules, ({ name }) => name)
  const found = new Map<ImportEntry, MatchedEntry>()
  for (const likeness of MOST_ALIKE_FIRST) {
    for (const entry of entries) {
      if (found.has(entry)) continue
      const candidates = byName.get(entry.input.name) ?? []
      const index = candidates.findIndex((schedule) => likenessOf(entry, schedule, now) === likeness)
      const [schedule] = index === -1 ? [] : candidates.splice(index, 1)
      if (schedule !== undefined) found.set(entry, { entry, schedule, likeness })
    }
  }
  return { matched: [...found.values()], missing: entries.filter((entry) => !found.has(entry)) }
}

type Fields = Readonly<Record<string, unknown>>

/** The server fills in the fields of these parts that an entry leaves out. */
const COMPLETED_PARTS = ['cadence', 'target', 'policy', 'retry']

function likenessOf(entry: ImportEntry, schedule: Schedule, now: number): Likeness {
  const portable: Fields = { grantId: schedule.grantId, ...toPortable(schedule) }
  if (!isWithin(withoutOwnGrant(entry.input), portable)) return 'different'
  const { pauseFor, slots } = missingState(entry, schedule, now)
  if (pauseFor !== null || slots.length > 0) return 'lacking'
  return (entry.pausedReason !== null) === (schedule.state === 'paused') ? 'same' : 'different'
}

/** A grantId of null requests a grant for this schedule alone. Such a grant has another id in every project. */
function withoutOwnGrant(input: ImportEntry['input']): Fields {
  const { grantId, ...rest } = input
  return grantId === null ? rest : input
}

/** True if every given field has the stored value. Fields that are not given may have any value. */
function isWithin(given: Fields, stored: Fields): boolean {
  return Object.entries(given).every(([field, value]) => {
    const other = stored[field]
    if (COMPLETED_PARTS.includes(field) && isFields(value) && isFields(other)) return isWithin(value, other)
    return canonicalJson(value) === canonicalJson(other)
  })
}

function isFields(value: unknown): value is Fields {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** An entry for which a schedule of the same name exists already. */
export interface ExistingEntry {
  readonly entry: ImportEntry
  readonly scheduleId: string
  /** `unfinished`: an import created the schedule and failed before it paused it or skipped its slots. */
  readonly likeness: 'same' | 'unfinished' | 'different'
}

interface ClassifiedEntries {
  readonly existing: readonly ExistingEntry[]
  readonly unfinished: readonly MatchedEntry[]
}

/** Tells schedules of an unfinished import from those that a user has changed since. An import never changes what a user changed. */
export async function classifyExisting(cli: Cli, matched: readonly MatchedEntry[]): Promise<ClassifiedEntries> {
  const unfinished: MatchedEntry[] = []
  const existing = await mapConcurrently(matched, ENTRY_CONCURRENCY, async (each): Promise<ExistingEntry> => {
    const { entry, schedule, likeness } = each
    const found = { entry, scheduleId: schedule.id }
    if (likeness !== 'lacking') return { ...found, likeness }
    if (!(await isUntouched(cli, entry, schedule.id))) return { ...found, likeness: 'different' }
    unfinished.push(each)
    return { ...found, likeness: 'unfinished' }
  })
  return { existing, unfinished }
}

/** Pauses schedules and skips slots where an unfinished import did not. Returns a note per entry. */
export async function finishEntries(cli: Cli, unfinished: readonly MatchedEntry[]): Promise<string[]> {
  return mapConcurrently(unfinished, ENTRY_CONCURRENCY, async ({ entry, schedule }) => {
    await applyState(cli, entry, schedule)
    return `${entry.place}: "${entry.input.name}" was created by an unfinished import and is complete now`
  })
}
