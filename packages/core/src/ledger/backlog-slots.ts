import type { CadenceCache, DueSlots } from '../cadences/cadence-cache.ts'
import type { NewLine } from '../db/new-lines.ts'
import { newLine } from './lines.ts'
import type { NewBacklog } from './store/backlogs.ts'

/** The part of the cadence cache that computes the slots of backlogs. */
export type BacklogCadences = Pick<CadenceCache, 'dueSlots' | 'firstFrom'>

interface StepOptions {
  readonly cadences: BacklogCadences
  /** JSON text; null if the revision was removed. */
  readonly cadence: string | null
  /** Slots before this instant are skipped: they are older than the retention. */
  readonly ledgerFrom: number
  /** How many slots all steps together compute at most. */
  readonly limit: number
}

/** How many slots one step computes at most: two milliseconds of work for most cadences. */
const SLOTS_PER_STEP = 100

/**
 * Computes the slots of a backlog in order, a step at a time. `next` of a step is the first slot that still lacks its line; null if none
 * does. Between steps the caller looks at the clock, or lets the rest of the process work (I14).
 */
export function* stepsOf(
  backlog: Pick<NewBacklog, 'nextSlotAt' | 'until'>,
  { cadences, cadence, ledgerFrom, limit }: StepOptions,
): Generator<DueSlots> {
  const { until } = backlog
  let next = firstOf(backlog, cadences, cadence, ledgerFrom)
  if (next === null) yield { due: [], next }
  for (let room = limit; next !== null && room > 0;) {
    const slots = dueFrom(cadences, cadence, { first: next, until, limit: Math.min(room, SLOTS_PER_STEP) })
    room -= slots.due.length
    next = slots.next !== null && slots.next <= until ? slots.next : null
    yield { due: slots.due, next }
  }
}

/** The lines of slots that came due before a change. */
export function linesOf(backlog: NewBacklog, slots: readonly number[], now: number): NewLine[] {
  const { reason, scheduleId: id, tenantId, projectId, revision } = backlog
  const excluded = new Set(backlog.excludedSlots)
  return slots.map((slot) =>
    newLine(
      { id, tenantId, projectId, revision },
      { slot, state: 'skipped', reason: excluded.has(slot) ? 'excluded' : reason },
      now,
    ),
  )
}

function firstOf(
  { nextSlotAt, until }: Pick<NewBacklog, 'nextSlotAt' | 'until'>,
  cadences: BacklogCadences,
  cadence: string | null,
  ledgerFrom: number,
): number | null {
  if (nextSlotAt >= ledgerFrom || cadence === null) return nextSlotAt
  try {
    const first = cadences.firstFrom(cadence, ledgerFrom)
    return first !== null && first <= until ? first : null
  } catch {
    return nextSlotAt
  }
}

/**
 * The next slots of a backlog. If the cadence cannot be read, or the search for a later slot fails, these are the slots that are
 * known: at least the first. If this threw instead, such a schedule could never be deleted.
 */
function dueFrom(
  cadences: BacklogCadences,
  cadence: string | null,
  range: { readonly first: number; readonly until: number; readonly limit: number },
): DueSlots {
  if (cadence === null) return { due: [range.first], next: null }
  try {
    return cadences.dueSlots(cadence, range)
  } catch {
    if (range.limit === 1) return { due: [range.first], next: null }
    return dueFrom(cadences, cadence, { ...range, limit: Math.floor(range.limit / 2) })
  }
}
