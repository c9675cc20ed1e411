import { spreadOffsetMs } from '../policy/spread.ts'
import type { AuditedLines, SlotRange } from '../store/audited-lines.ts'
import type { AuditedSchedule } from '../store/audited-schedules.ts'
import type { AuditWindow, SpecCache } from './spec-cache.ts'

interface LostSlot {
  readonly slot: number
  /** The revision that awaited it. */
  readonly revision: number
}

/** What the ledger of one schedule should say, held against what it says. */
export interface SlotVerdict {
  /** How many slots came due. */
  readonly expected: number
  /** Came due, and left no line. */
  readonly lost: readonly LostSlot[]
  /** Have a line of the schedule, and no spec explains why. */
  readonly unknown: readonly number[]
  /** Up to where it was looked at. */
  readonly until: number
}

interface Awaited {
  readonly revision: number
  /** False if it may have a line but need not: see CHANGE_RACE_MS. */
  readonly isDue: boolean
}

/**
 * A change counts from the start of its transaction, which may have waited for the schedule's lock while a younger one
 * claimed slots. So slots that came due this soon after a change may have lines of the time before it. Longer than any
 * statement may take.
 */
export const CHANGE_RACE_MS = 60_000

export interface Comparison {
  readonly window: AuditWindow
  readonly specs: SpecCache
  /** How many lines of a schedule were read at most. */
  readonly linesMax: number
  /** Slots whose lines are still to be written, both ends included. */
  readonly backlogs: readonly SlotRange[]
}

/**
 * Recomputes which slots of a window came due, span by span of the schedule's history, and compares.
 *
 * A slot that an active schedule still awaits is not lost, however late it is: its line is begin's to write. Nor is one of a
 * backlog that a change left: its line follows.
 * @throws Error if a spec can no longer be read
 */
export function compareSlots(
  schedule: AuditedSchedule,
  lines: AuditedLines,
  { window, specs, linesMax, backlogs }: Comparison,
): SlotVerdict {
  const awaited = awaitedSlots(schedule, window.dueUntil ?? window.to, specs)
  const until = Math.min(
    linesUntil(lines, linesMax) ?? window.to,
    ...schedule.spans.map((span) => slotsOf(span, specs).until),
  )
  const written = new Set([...lines.scheduled, ...lines.manual])
  const due = [...awaited].filter(([slot, { isDue }]) => isDue && slot <= until)
  const claimedBefore = schedule.nextSlotAt ?? Infinity
  const isToBeWritten = (slot: number): boolean => backlogs.some(({ from, to }) => slot >= from && slot <= to)
  return {
    expected: due.length,
    lost: due
      .filter(([slot]) => slot < claimedBefore && !written.has(slot) && !isToBeWritten(slot))
      .map(([slot, { revision }]) => ({ slot, revision })),
    unknown: lines.scheduled.filter((slot) => slot <= until && !awaited.has(slot)),
    until,
  }
}

function awaitedSlots({ id, spans }: AuditedSchedule, dueUntil: number, specs: SpecCache): Map<number, Awaited> {
  const awaited = new Map<number, Awaited>()
  for (const span of spans) {
    const { revision, nextSlotAt } = span
    const endsAt = span.endsAt ?? Infinity
    const offset = spreadOffsetMs(id, specs.spreadSeconds(required(span.policy)))
    for (const slot of slotsOf(span, specs).slots) {
      const dueAt = slot + offset
      if (dueAt > endsAt + CHANGE_RACE_MS) break
      // The span in which it came due first answers for it.
      if (slot < nextSlotAt || awaited.get(slot)?.isDue === true) continue
      awaited.set(slot, { revision, isDue: dueAt <= Math.min(endsAt, dueUntil) })
    }
  }
  return awaited
}

function slotsOf(
  { cadence, nextSlotAt, endsAt }: AuditedSchedule['spans'][number],
  specs: SpecCache,
): ReturnType<SpecCache['slots']> {
  const to = endsAt === null ? Infinity : endsAt + CHANGE_RACE_MS
  return specs.slots(required(cadence), { from: nextSlotAt, to })
}

function required(text: string | null): string {
  if (text === null) throw new Error('a revision is gone')
  return text
}

/** The last line that was read, if there may be more. */
function linesUntil({ scheduled, manual }: AuditedLines, linesMax: number): number | undefined {
  if (scheduled.length + manual.length < linesMax) return undefined
  return Math.max(scheduled.at(-1) ?? -Infinity, manual.at(-1) ?? -Infinity)
}
