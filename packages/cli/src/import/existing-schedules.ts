import type { Schedule } from '@carillon/api'

import { canonicalJson, toPortable } from '../portable-schedule.ts'
import { lackingState } from './entry-state.ts'
import type { ImportEntry } from './import-entry.ts'

/**
 * `same`: all that the entry says is what the schedule says. `lacking`: but for being paused, or slots taken out.
 * `different`: it may be another, or the same spelt otherwise.
 */
type Likeness = 'same' | 'lacking' | 'different'

/** An entry whose name a schedule has already. */
export interface MatchedEntry {
  readonly entry: ImportEntry
  readonly schedule: Schedule
  readonly likeness: Likeness
}

interface Match {
  readonly matched: readonly MatchedEntry[]
  readonly missing: readonly ImportEntry[]
}

const LIKEST_FIRST: readonly Likeness[] = ['same', 'lacking', 'different']

/**
 * Tells what is there already, by exact name. Of several with one name, those that are most alike belong together; what is
 * left belongs together in its order, so that as many are missing as there are fewer schedules than entries.
 */
export function matchExisting(entries: readonly ImportEntry[], schedules: readonly Schedule[], now: number): Match {
  const byName = Map.groupBy(schedules, ({ name }) => name)
  const found = new Map<ImportEntry, MatchedEntry>()
  for (const likeness of LIKEST_FIRST) {
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

/** These parts the service completes with what is left open. */
const COMPLETED_PARTS = ['cadence', 'target', 'policy', 'retry']

function likenessOf(entry: ImportEntry, schedule: Schedule, now: number): Likeness {
  const portable: Fields = { grantId: schedule.grantId, ...toPortable(schedule) }
  if (!isWithin(withoutOwnGrant(entry.input), portable)) return 'different'
  const { pauseFor, slots } = lackingState(entry, schedule, now)
  if (pauseFor !== null || slots.length > 0) return 'lacking'
  return (entry.pausedReason !== null) === (schedule.state === 'paused') ? 'same' : 'different'
}

/** Null asks for a grant of its own, which has another id in every project. */
function withoutOwnGrant(input: ImportEntry['input']): Fields {
  const { grantId, ...rest } = input
  return grantId === null ? rest : input
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
