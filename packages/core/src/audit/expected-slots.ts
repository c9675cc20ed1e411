import type { CadenceCache } from '../cadences/cadence-cache.ts'
import { spreadOffsetMs } from '../policy/spread.ts'
import type { AuditedLines, AuditedSchedule, AuditedSpan, BacklogRange } from './store/slots.ts'

/** Instants between which slots are audited, both included. */
export interface AuditWindow {
  readonly from: number
  readonly to: number
  /** Slots that come due later are not expected yet: with a spread, a slot comes due after its instant. @default `to` */
  readonly dueUntil?: number
}

interface LostSlot {
  readonly slot: number
  /** The revision under which it came due. */
  readonly revision: number
}

/** How the ledger of one schedule differs from what its specs say. */
export interface SlotVerdict {
  /** How many slots came due. */
  readonly expected: number
  /** Slots that came due and have no line. */
  readonly lost: readonly LostSlot[]
  /** Lines at instants that no spec names. */
  readonly unknown: readonly number[]
  /** The last instant that was compared. */
  readonly until: number
}

interface ExpectedSlot {
  readonly revision: number
  /** False if the slot may have a line but needs none: it is not due yet, or a change came close to it (see CHANGE_RACE_MS). */
  readonly isDue: boolean
}

/**
 * Some changes are dated by the start of their transaction, which may then have waited for the schedule's lock while a younger transaction
 * claimed slots. So a slot that came due up to this long after a change may have a line that was written before the change. It is longer
 * than any statement may take.
 */
export const CHANGE_RACE_MS = 60_000

export interface Comparison {
  readonly window: AuditWindow
  readonly cadences: CadenceCache
  /** The most slots that are computed for one span. Slots after these are not compared. */
  readonly slotsMax: number
  /** The limit with which the lines of each schedule were read. */
  readonly linesMax: number
  /** Slots whose lines the backlog writer still has to insert, both ends included. */
  readonly backlogs: readonly BacklogRange[]
}

/**
 * Recomputes which slots of a window came due, span by span of the schedule's history, and compares them with the lines.
 *
 * A slot that begin has not reached yet is not lost, however late it is: begin will insert its line. Nor is a slot of a backlog lost: the
 * backlog writer will insert its line.
 * @throws Error if a spec cannot be read
 */
export function compareWithLedger(schedule: AuditedSchedule, lines: AuditedLines, comparison: Comparison): SlotVerdict {
  const { window, linesMax, backlogs } = comparison
  const spans = schedule.spans.map((span) => ({ ...span, ...slotsOf(span, comparison) }))
  const expected = expectedSlots(schedule.id, spans, comparison)
  const until = Math.min(linesUntil(lines, linesMax) ?? window.to, ...spans.map((span) => span.until))
  const written = new Set([...lines.scheduled, ...lines.manual])
  const due = [...expected].filter(([slot, { isDue }]) => isDue && slot <= until)
  const claimedBefore = schedule.nextSlotAt ?? Infinity
  const isToBeWritten = (slot: number): boolean => backlogs.some(({ from, to }) => slot >= from && slot <= to)
  return {
    expected: due.length,
    lost: due
      .filter(([slot]) => slot < claimedBefore && !written.has(slot) && !isToBeWritten(slot))
      .map(([slot, { revision }]) => ({ slot, revision })),
    unknown: lines.scheduled.filter((slot) => slot <= until && !expected.has(slot)),
    until,
  }
}

/** A span of a schedule's history, and the slots of its cadence in it. */
interface SpanSlots extends AuditedSpan {
  /** Ascending. */
  readonly slots: readonly number[]
  /** `slots` is complete up to here: the end of the window, unless the span has too many slots. */
  readonly until: number
}

function expectedSlots(
  scheduleId: string,
  spans: readonly SpanSlots[],
  { window, cadences }: Comparison,
): Map<number, ExpectedSlot> {
  const dueUntil = window.dueUntil ?? window.to
  const expected = new Map<number, ExpectedSlot>()
  for (const { revision, nextSlotAt, endsAt, policy, slots } of spans) {
    const spanEndsAt = endsAt ?? Infinity
    const offset = spreadOffsetMs(scheduleId, cadences.policy(required(policy)).spreadSeconds)
    for (const slot of slots) {
      const dueAt = slot + offset
      if (dueAt > spanEndsAt + CHANGE_RACE_MS) break
      // The first span in which the slot came due decides its revision.
      if (slot < nextSlotAt || expected.get(slot)?.isDue === true) continue
      expected.set(slot, { revision, isDue: dueAt <= Math.min(spanEndsAt, dueUntil) })
    }
  }
  return expected
}

function slotsOf(
  { cadence, nextSlotAt, endsAt }: AuditedSpan,
  { window, cadences, slotsMax }: Comparison,
): Pick<SpanSlots, 'slots' | 'until'> {
  const from = Math.max(window.from, nextSlotAt)
  const to = endsAt === null ? window.to : Math.min(window.to, endsAt + CHANGE_RACE_MS)
  const { slots, next } = cadences.slotsBetween(required(cadence), { from, to, limit: slotsMax })
  const isComplete = next === null || next > to
  return { slots, until: isComplete ? window.to : (slots.at(-1) ?? from) }
}

function required(text: string | null): string {
  if (text === null) throw new Error('the row of a revision is gone')
  return text
}

/** The slot of the last line that was read; undefined if all lines were read. */
function linesUntil({ scheduled, manual }: AuditedLines, linesMax: number): number | undefined {
  if (scheduled.length + manual.length < linesMax) return undefined
  return Math.max(scheduled.at(-1) ?? -Infinity, manual.at(-1) ?? -Infinity)
}
