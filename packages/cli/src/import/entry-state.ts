import { isRunChange, PAGE_SIZE, type Schedule } from '@carillon/api'

import type { PageOptions } from '../options/page-options.ts'
import type { Cli } from '../process/cli.ts'
import { connect, retryWhileBusy } from '../service/connect.ts'
import type { ImportEntry } from './import-entry.ts'

/** How many lines of a schedule's history an import reads. A schedule with more has been used, so the import leaves it alone. */
const HISTORY_READ_MAX = 10 * PAGE_SIZE.max

type State = Pick<Schedule, 'state' | 'skippedSlots'>

interface MissingState {
  /** The reason to pause the schedule with; null if it is not to be paused, or is paused already. */
  readonly pauseFor: string | null
  readonly slots: readonly string[]
}

/** The pause and the skipped slots of an entry that its schedule does not have yet. They are applied after the create. */
export function missingState({ pausedReason, skippedSlots }: ImportEntry, schedule: State, now: number): MissingState {
  const future = skippedSlots.map((slot) => new Date(slot)).filter((slot) => slot.getTime() > now)
  return {
    pauseFor: schedule.state === 'active' ? pausedReason : null,
    slots: future.map((slot) => slot.toISOString()).filter((slot) => !schedule.skippedSlots.includes(slot)),
  }
}

/** Pauses a schedule, then skips its slots: until the pause its slots start. May be repeated after any failure: see `isUntouched`. */
export async function applyState(cli: Cli, entry: ImportEntry, schedule: Schedule): Promise<void> {
  const client = connect(cli)
  const { id } = schedule
  const { pauseFor, slots } = missingState(entry, schedule, cli.clock.now())
  if (pauseFor !== null) await retryWhileBusy(cli, () => client.schedules.pause(id, { reason: pauseFor }))
  for (const slot of slots) await retryWhileBusy(cli, () => client.schedules.skip(id, slot))
}

/**
 * True if the history of a schedule contains only changes that an import of the entry makes. Runs that a caller requested or cancelled do
 * not count, because they leave the schedule as it is. Reads pages, the latest change first, until it finds another change. False if it finds
 * none in the latest `HISTORY_READ_MAX` lines and there are more.
 */
export async function isUntouched(cli: Cli, { pausedReason }: ImportEntry, id: string): Promise<boolean> {
  const client = connect(cli)
  let cursor: string | null = null
  for (let read = 0; read < HISTORY_READ_MAX; read += PAGE_SIZE.max) {
    const page: PageOptions = { limit: PAGE_SIZE.max, ...(cursor === null ? {} : { cursor }) }
    const { items, nextCursor } = await retryWhileBusy(cli, () => client.schedules.history(id, page))
    const isOfImport = items.every(
      ({ change, reason }) =>
        isRunChange(change) ||
        change === 'created' ||
        change === 'slot_skipped' ||
        (change === 'paused' && reason === pausedReason),
    )
    if (!isOfImport) return false
    if (nextCursor === null) return true
    cursor = nextCursor
  }
  return false
}
