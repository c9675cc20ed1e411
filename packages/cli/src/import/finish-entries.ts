import type { Cli } from '../cli.ts'
import { inParallel } from '../in-parallel.ts'
import { applyState, isUntouched } from './entry-state.ts'
import type { MatchedEntry } from './existing-schedules.ts'
import type { ImportEntry } from './import-entry.ts'

/** An entry that has a schedule already. */
export interface ExistingEntry {
  readonly entry: ImportEntry
  readonly scheduleId: string
  /** `unfinished`: an import made it, and broke off before it was paused or its slots were taken out. */
  readonly likeness: 'same' | 'unfinished' | 'different'
}

interface Settled {
  readonly existing: readonly ExistingEntry[]
  readonly unfinished: readonly MatchedEntry[]
}

const CONCURRENCY = 8

/** Tells an import that broke off from what somebody has done since. */
export async function settleExisting(cli: Cli, matched: readonly MatchedEntry[]): Promise<Settled> {
  const unfinished: MatchedEntry[] = []
  const existing = await inParallel(matched, CONCURRENCY, async (each): Promise<ExistingEntry> => {
    const { entry, schedule, likeness } = each
    const found = { entry, scheduleId: schedule.id }
    if (likeness !== 'lacking') return { ...found, likeness }
    if (!(await isUntouched(cli, entry, schedule.id))) return { ...found, likeness: 'different' }
    unfinished.push(each)
    return { ...found, likeness: 'unfinished' }
  })
  return { existing, unfinished }
}

/** Does what the import that broke off left. Answers a note for each. */
export async function finishEntries(cli: Cli, unfinished: readonly MatchedEntry[]): Promise<string[]> {
  return inParallel(unfinished, CONCURRENCY, async ({ entry, schedule }) => {
    await applyState(cli, entry, schedule)
    return finishedNote(entry)
  })
}

function finishedNote({ place, input }: ImportEntry): string {
  return `${place}: "${input.name}" was made by an import that broke off: it was finished now`
}
