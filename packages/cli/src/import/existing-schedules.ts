import type { Schedule } from '@carillon/api'

import { canonicalJson, toPortable } from '../portable-schedule.ts'
import type { ImportEntry } from './import-entry.ts'

/** An entry whose name a schedule has already. */
export interface ExistingEntry {
  readonly entry: ImportEntry
  readonly scheduleId: string
  /** Whether all that the entry says is what the schedule says. Otherwise it may be another, or the same spelt otherwise. */
  readonly isSame: boolean
}

interface Match {
  readonly existing: readonly ExistingEntry[]
  readonly missing: readonly ImportEntry[]
}

/**
 * Tells what is there already, by exact name. Of several with one name, those that are the same belong together; what is
 * left belongs together in its order, so that as many are missing as there are fewer schedules than entries.
 */
export function matchExisting(entries: readonly ImportEntry[], schedules: readonly Schedule[]): Match {
  const byName = Map.groupBy(schedules, ({ name }) => name)
  const found = new Map<ImportEntry, ExistingEntry>()
  for (const isSame of [true, false]) {
    for (const entry of entries) {
      if (found.has(entry)) continue
      const candidates = byName.get(entry.input.name) ?? []
      const index = isSame ? candidates.findIndex((schedule) => isEqual(entry, schedule)) : 0
      const [schedule] = index === -1 ? [] : candidates.splice(index, 1)
      if (schedule !== undefined) found.set(entry, { entry, scheduleId: schedule.id, isSame })
    }
  }
  return { existing: [...found.values()], missing: entries.filter((entry) => !found.has(entry)) }
}

type Fields = Readonly<Record<string, unknown>>

/** These parts the service completes with what is left open. */
const COMPLETED_PARTS = ['cadence', 'target', 'policy', 'retry']

function isEqual({ input, pausedReason, skippedSlots }: ImportEntry, schedule: Schedule): boolean {
  const portable: Fields = { grantId: schedule.grantId, ...toPortable(schedule) }
  const isPausedAlike = (pausedReason === null) === (schedule.state !== 'paused')
  const hasSlots = skippedSlots.every((slot) => schedule.skippedSlots.includes(new Date(slot).toISOString()))
  return isPausedAlike && hasSlots && isWithin(input, portable)
}

/** Whether all that is given is so; what is left open may be anything. */
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
