import { judgeSlot, type SlotFault } from '../policy/ledger-slot.ts'
import {
  listSlotsOfGroup,
  type AuditedCounts,
  type LedgerRange,
  type OddRun,
  type SlotGroup,
} from '../store/audited-ledger.ts'
import type { NewFinding } from '../store/audits.ts'
import type { Tx } from '../store/database.ts'
import type { StrandedRun } from '../store/ledger-pages.ts'
import { formatInstant } from './finding-text.ts'
import type { OverdueJudge } from './overdue-judge.ts'

/** How many slots with the same fault are listed for a schedule; all of them are counted. */
const SLOTS_PER_FAULT = 100

/** Attempts whose run is gone are told as a lost line. */
export function faultOf(group: SlotGroup): SlotFault | { readonly kind: 'slot_lost'; readonly problem: string } | null {
  if (group.state !== null) return judgeSlot(group)
  return { kind: 'slot_lost', problem: 'the ledger has attempts of a slot that has no line' }
}

const REMEDIES = {
  attempt_missing: 'restore the attempts from a backup; the run itself stays as it is',
  run_contradicted:
    'see who wrote to the database by hand, and restore the run from a backup; if nobody did, please report it',
  slot_lost: 'restore the line from a backup',
} as const

export async function listFaults(tx: Tx, group: SlotGroup, range: LedgerRange): Promise<NewFinding[]> {
  const { scheduleId: id, signature, slots: count } = group
  const fault = faultOf(group)
  if (fault === null) return []
  const slots = await listSlotsOfGroup(tx, { ...range, ids: [id], signature, limit: SLOTS_PER_FAULT })
  const more = count > slots.length ? `, and so are ${count - slots.length} later slots` : ''
  return slots.map((scheduledFor, at) => ({
    kind: fault.kind,
    scheduleId: id,
    scheduledFor,
    detail: `${fault.problem}${at === slots.length - 1 ? more : ''}: ${REMEDIES[fault.kind]}`,
    isRepaired: false,
  }))
}

export function revisionFinding({ id, revision: present }: AuditedCounts, revision: number, runs: number): NewFinding {
  const effect = revision === present ? 'no slot can begin' : 'runs that it began cannot be tried again'
  const detail =
    `revision ${revision}, under which ${runs} runs began, is gone, and ${effect}: restore it from a backup` +
    (revision === present ? ', or edit the schedule' : '')
  return { kind: 'revision_missing', scheduleId: id, scheduledFor: null, detail, isRepaired: false }
}

export function strandedFinding({ scheduleId, scheduledFor, runId }: StrandedRun): NewFinding {
  const detail =
    `the run is open, and its schedule is gone, so no worker takes it: restore the schedule ${scheduleId} from a backup, ` +
    `or delete the run (delete from carillon.runs where id = '${runId}')`
  return { kind: 'run_stuck', scheduleId, scheduledFor, detail, isRepaired: false }
}

/**
 * A run that is not over and that nobody sees to; none if it merely waits.
 * @param isHeld another transaction holds the row of its schedule
 */
export function oddFinding(run: OddRun, judge: OverdueJudge, isHeld: boolean): NewFinding[] {
  const { scheduleId, scheduledFor, runId } = run
  const told = (kind: NewFinding['kind'], detail: string): NewFinding[] => [
    { kind, scheduleId, scheduledFor, detail, isRepaired: false },
  ]
  const cancel = `cancel it (carillon runs cancel ${runId})`
  switch (run.what) {
    case 'turn':
      return told('run_stuck', `the run waits for its turn, and no other run of its schedule is open: ${cancel}`)
    case 'held': {
      const since = run.lostAt === null ? 'is not on the list' : `lost its lease at ${formatInstant(run.lostAt)}`
      const remedy = isHeld
        ? 'another transaction holds the row of its schedule: see which one (pg_locks), and end it'
        : 'see why no rescuer puts it back (carillon doctor)'
      return told('run_without_lease', `the run is held by worker ${run.workerId}, which ${since}: ${remedy}`)
    }
    case 'due': {
      if (!judge.isPassedOver(run, 'runAt')) return []
      const remedy = judge.remedy(run.lane, isHeld) + (isHeld ? '' : `, or ${cancel}`)
      const detail = `the run has been due since ${formatInstant(run.dueAt)}, and no worker took it: ${remedy}`
      return told('run_stuck', detail)
    }
  }
}
