import type { RunState } from '@carillon/api'

import type { RightCounts } from './run-counts.ts'
import type { NewFinding } from './store/findings.ts'
import type { RunWithoutSchedule, UnattendedRun } from './store/open-runs.ts'

/*
 * How each finding reads: what is wrong, then what to do.
 */

export const FAULT_REMEDIES = {
  attempt_missing: 'restore the attempts from a backup; the run itself stays as it is',
  run_contradicted:
    'see who wrote to the database by hand, and restore the run from a backup; if that was not the cause, please report it',
  slot_lost: 'restore the line from a backup',
} as const

/** What to do if another transaction holds the row lock of a schedule. */
export const ROW_LOCKED_REMEDY =
  'another transaction holds the row of its schedule: see which one (pg_locks), and end it'

/** @param state the state of the line that the audit inserted; undefined if the slot had a line by then */
export function lostSlotFinding(
  { scheduleId, scheduledFor, revision }: { scheduleId: string; scheduledFor: number; revision: number },
  state: RunState | undefined,
): NewFinding {
  const what = `the slot came due under revision ${revision} and left no line`
  const remedy =
    state === undefined
      ? 'its line was written in the meantime; nothing is left to do'
      : state === 'skipped'
        ? 'the audit wrote the line as skipped (missed), because the slot did not run; ' +
          'run the schedule by hand if the work is still wanted'
        : `its attempts say that it ran, so its line was restored as ${state}; nothing is left to do`
  const isRepaired = state !== undefined
  return { kind: 'slot_lost', scheduleId, scheduledFor, detail: `${what}: ${remedy}`, isRepaired }
}

/** A lost slot whose line cannot be inserted yet, because another transaction has locked the schedule. */
export function lockedLostSlotFinding(scheduleId: string, slot: number, revision: number): NewFinding {
  const detail =
    `the slot came due under revision ${revision} and left no line, and ${ROW_LOCKED_REMEDY}; ` +
    'an audit then writes the line'
  return { kind: 'slot_lost', scheduleId, scheduledFor: slot, detail, isRepaired: false }
}

export function unknownSlotFinding(scheduleId: string, scheduledFor: number): NewFinding {
  const detail =
    'the ledger has a line at an instant that is not a slot of the schedule: ' +
    'see who wrote to the database by hand; if that was not the cause, please report it'
  return { kind: 'slot_unknown', scheduleId, scheduledFor, detail, isRepaired: false }
}

export function pastDueFinding(
  { id, nextSlotAt }: { id: string; nextSlotAt: number | null },
  dueAt: number,
  remedy: string,
): NewFinding {
  const detail = `due since ${formatInstant(dueAt)}, and no worker has begun it: ${remedy}`
  return { kind: 'schedule_past_due', scheduleId: id, scheduledFor: nextSlotAt, detail, isRepaired: false }
}

export function missingRevisionFinding(
  { id, revision: current }: { id: string; revision: number },
  revision: number,
  runs: number,
): NewFinding {
  const effect = revision === current ? 'no slot can begin' : 'its runs cannot be tried again'
  const detail =
    `revision ${revision} is missing, so ${effect} (runs that began under it: ${runs}): restore it from a backup` +
    (revision === current ? ', or edit the schedule' : '')
  return { kind: 'revision_missing', scheduleId: id, scheduledFor: null, detail, isRepaired: false }
}

/** A count that is too high may be the only trace of lines that were deleted by hand. */
export function wrongCountFinding(counts: RightCounts & { readonly id: string }, right: RightCounts): NewFinding {
  const { id, runCount, failureCount, consecutiveFailures } = counts
  const missing = Math.max(runCount - right.runCount, failureCount - right.failureCount, 0)
  const remedy =
    missing === 0
      ? 'nothing is left to do'
      : `the lines of ${missing} may be lost: look for them in a backup, unless the count was changed by hand`
  const detail =
    `the schedule counted ${runCount} runs, ${failureCount} of them failed, ${consecutiveFailures} in a row; its ledger has ` +
    `${right.runCount}, ${right.failureCount} and ${right.consecutiveFailures}: the counts were corrected; ${remedy}`
  return { kind: 'count_wrong', scheduleId: id, scheduledFor: null, detail, isRepaired: true }
}

export function runWithoutScheduleFinding({ scheduleId, scheduledFor, runId }: RunWithoutSchedule): NewFinding {
  const detail =
    `the run is open, and its schedule is gone, so no worker takes it: restore the schedule ${scheduleId} from a backup, ` +
    `or delete the run (in Carillon's schema: delete from runs where id = '${runId}')`
  return { kind: 'run_stuck', scheduleId, scheduledFor, detail, isRepaired: false }
}

type UnattendedRunOf<What extends UnattendedRun['what']> = Extract<UnattendedRun, { readonly what: What }>

/** @param remedy what to do so that a worker takes the run */
export function overdueRunFinding(run: UnattendedRunOf<'due'>, remedy: string, isRowLocked: boolean): NewFinding {
  const { scheduleId, scheduledFor } = run
  const orCancel = isRowLocked ? '' : `, or ${cancelRemedy(run)}`
  const detail = `the run has been due since ${formatInstant(run.dueAt)}, and no worker took it: ${remedy}${orCancel}`
  return { kind: 'run_stuck', scheduleId, scheduledFor, detail, isRepaired: false }
}

/** @param isRowLocked another transaction holds the row of its schedule */
export function unattendedRunFinding(run: UnattendedRunOf<'turn' | 'held'>, isRowLocked: boolean): NewFinding {
  const { scheduleId, scheduledFor } = run
  if (run.what === 'turn') {
    const detail = `the run waits for its turn, and no other run of its schedule is open: ${cancelRemedy(run)}`
    return { kind: 'run_stuck', scheduleId, scheduledFor, detail, isRepaired: false }
  }
  const fate =
    run.lostAt === null ? 'has no row in the table workers' : `lost its lease at ${formatInstant(run.lostAt)}`
  const remedy = isRowLocked ? ROW_LOCKED_REMEDY : 'see why no rescuer puts it back (carillon doctor)'
  const detail = `the run is held by worker ${run.workerId}, which ${fate}: ${remedy}`
  return { kind: 'run_without_lease', scheduleId, scheduledFor, detail, isRepaired: false }
}

function cancelRemedy({ runId }: UnattendedRun): string {
  return `cancel it (carillon runs cancel ${runId})`
}

function formatInstant(instant: number): string {
  return new Date(instant).toISOString()
}
