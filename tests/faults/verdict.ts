import type { ChangeRow, Ledger, RunRow, ScheduleRow } from './ledger.ts'
import { gridOf, slotsBetween } from './schedule-name.ts'
import type { Call } from './target-server.ts'

/** The faults that were found, in words. All lists are empty if there are none. */
export interface Verdict {
  /** How many slots came due, computed from the names and changes of the schedules. */
  readonly slots: number
  readonly calls: number
  /** How many runs succeeded. A fleet that skips every slot loses none, but proves nothing. */
  readonly succeeded: number
  /** Slots that came due and have no line. */
  readonly lost: readonly string[]
  /** Slots with two lines or two runs, and runs that were called after their success was recorded. */
  readonly doubled: readonly string[]
  /** Calls before their slot. */
  readonly early: readonly string[]
  /** Lines that are not slots of their schedule, and successes without a successful answer of the target. */
  readonly unexplained: readonly string[]
  /** Schedules whose counts of runs and failures differ from the ledger. */
  readonly miscounted: readonly string[]
  /** Attempts that were made twice with the same number. That is allowed (at-least-once), and reported. */
  readonly repeatedAttempts: number
}

/** A change may wait for locks between the instant that it records and the instant from which it looks for the next slot. */
const CHANGE_MAX_MS = 10_000

/** Compares the database with the requests of the workload and with the calls that the target received. */
export function judge(ledger: Ledger, calls: readonly Call[]): Verdict {
  const runsOf = Map.groupBy(ledger.runs, ({ scheduleId }) => scheduleId)
  const changesOf = Map.groupBy(ledger.changes, ({ scheduleId }) => scheduleId)
  const schedules = ledger.schedules.map(({ id, name, nextSlotAt }) => {
    // The next slot of an active schedule is not due yet, so it has no line.
    const until = nextSlotAt === null ? ledger.readAt : nextSlotAt - 1
    return judgeSlots(id, name, { changes: changesOf.get(id) ?? [], runs: runsOf.get(id) ?? [], until })
  })
  const byKey = Map.groupBy(calls, ({ key }) => key)
  const attempts = new Set(calls.map(({ key, runId, attempt }) => `${key} ${runId} ${attempt}`))
  return {
    slots: sum(schedules.map(({ due }) => due)),
    calls: calls.length,
    succeeded: ledger.runs.filter(({ state }) => state === 'succeeded').length,
    lost: schedules.flatMap(({ lost }) => lost),
    doubled: [...twoLines(ledger.runs), ...twoRuns(byKey), ...calledAfterSuccess(ledger.runs, calls)],
    early: calls
      .filter(({ arrivedAt, scheduledFor }) => arrivedAt < scheduledFor)
      .map(({ key, arrivedAt, scheduledFor }) => `${key} was called ${scheduledFor - arrivedAt} ms before its slot`),
    unexplained: [...schedules.flatMap(({ unexplained }) => unexplained), ...unfounded(ledger.runs, calls)],
    miscounted: ledger.schedules.flatMap((schedule) => miscountOf(schedule, runsOf.get(schedule.id) ?? [])),
    repeatedAttempts: calls.length - attempts.size,
  }
}

interface ScheduleHistory {
  readonly changes: readonly ChangeRow[]
  readonly runs: readonly RunRow[]
  readonly until: number
}

function judgeSlots(
  id: string,
  name: string,
  { changes, runs, until }: ScheduleHistory,
): { due: number; lost: string[]; unexplained: string[] } {
  const grid = gridOf(name)
  const written = new Set(runs.filter(({ trigger }) => trigger === 'schedule').map(({ scheduledFor }) => scheduledFor))
  const due = new Set(
    changes.flatMap(({ nextSlotAt }, place) => {
      if (nextSlotAt === null) return []
      const next = changes[place + 1]
      // An edit does not interrupt a schedule: every slot before the one that it awaits after the edit came due.
      const endsAt = next === undefined ? until : next.nextSlotAt === null ? next.changedAt : next.nextSlotAt - 1
      return slotsBetween(grid, nextSlotAt, Math.min(endsAt, until))
    }),
  )
  const late = changes.filter(
    ({ changedAt, nextSlotAt }) => (nextSlotAt ?? 0) > changedAt + grid.everyMs + CHANGE_MAX_MS,
  )
  const createdAt = changes[0]?.changedAt ?? Infinity
  return {
    due: due.size,
    lost: [
      ...[...due].filter((slot) => !written.has(slot)).map((slot) => `${id} (${name}) has no line for ${textOf(slot)}`),
      ...late.map(
        ({ change, changedAt }) =>
          `${id} (${name}) awaited its first slot too late when it was ${change} at ${textOf(changedAt)}`,
      ),
    ],
    unexplained: [...written]
      .filter((slot) => slot < createdAt || slotsBetween(grid, slot, slot).length === 0)
      .map((slot) => `${id} (${name}) has a line for ${textOf(slot)}, which is no slot of it`),
  }
}

function miscountOf({ id, runCount, failureCount }: ScheduleRow, runs: readonly RunRow[]): string[] {
  // A run without an attempt that was skipped or cancelled is not counted.
  const began = runs.filter(({ attemptCount, completedAt }) => attemptCount > 0 || completedAt === null).length
  const failed = runs.filter(({ state }) => state === 'failed').length
  if (runCount === began && failureCount === failed) return []
  return [`${id} counts ${runCount} runs and ${failureCount} failures, its ledger has ${began} and ${failed}`]
}

function twoLines(runs: readonly RunRow[]): string[] {
  const lines = Map.groupBy(runs, ({ scheduleId, scheduledFor }) => `${scheduleId} at ${textOf(scheduledFor)}`)
  return [...lines].filter(([, found]) => found.length > 1).map(([slot, found]) => `${slot} has ${found.length} lines`)
}

function twoRuns(byKey: ReadonlyMap<string, readonly Call[]>): string[] {
  return [...byKey]
    .map(([key, calls]) => ({ key, runIds: [...new Set(calls.map(({ runId }) => runId))] }))
    .filter(({ runIds }) => runIds.length > 1)
    .map(({ key, runIds }) => `${key} was called for the runs ${runIds.join(' and ')}`)
}

/** Calls of a run after its recorded success, which must not happen. The target and Postgres read the same clock. */
function calledAfterSuccess(runs: readonly RunRow[], calls: readonly Call[]): string[] {
  const endOf = new Map(
    runs.filter(({ state }) => state === 'succeeded').map(({ id, completedAt }) => [id, completedAt]),
  )
  return calls
    .filter(({ runId, arrivedAt }) => arrivedAt > (endOf.get(runId) ?? Infinity))
    .map(({ runId, attempt }) => `run ${runId} was called (attempt ${attempt}) after its success was recorded`)
}

function unfounded(runs: readonly RunRow[], calls: readonly Call[]): string[] {
  const answered = new Set(calls.filter(({ status }) => status === 200).map(({ runId }) => runId))
  return runs
    .filter(({ id, state }) => state === 'succeeded' && !answered.has(id))
    .map(({ id }) => `run ${id} succeeded without a successful answer of the target`)
}

function textOf(instant: number): string {
  return new Date(instant).toISOString()
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, number) => total + number, 0)
}
