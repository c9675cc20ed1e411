import type { Clock } from '../clock.ts'
import { judgeSlot, type SlotFault } from '../policy/ledger-slot.ts'
import { isPassedOver, OVERDUE_MS, type LivingWorker } from '../policy/overdue.ts'
import {
  correctCounts,
  groupSlots,
  listAuditedCounts,
  listOddRuns,
  listSlotsOfGroup,
  type AuditedCounts,
  type OddRun,
  type SlotGroup,
} from '../store/audited-ledger.ts'
import type { NewFinding } from '../store/audits.ts'
import { transact, type Db, type Tx } from '../store/database.ts'
import { lockFreeSchedules } from '../store/schedule-lock.ts'
import { readSnapshot } from '../store/snapshot.ts'
import { findFirstDue, listLivingWorkers } from '../store/worker-room.ts'
import { formatInstant } from './finding-text.ts'

export interface LedgerAuditTask {
  readonly ids: readonly string[]
  readonly now: number
  /** What ended, and schedules that were made, up to this instant is of an older version; null: nothing is. */
  readonly legacyUntil: number | null
  /** All runs of a schedule that was made after this instant are in the ledger; of an older one some may be gone. */
  readonly completeSince: number
  /** Somebody waits for the answer: what can only be told after a while is told at once. */
  readonly isAsked: boolean
}

/** What is wrong with one schedule, or looks so. */
interface Examined {
  readonly counts: AuditedCounts
  /** The counts as they should be; null if they are right. */
  readonly right: { readonly runCount: number; readonly failureCount: number } | null
  readonly faulty: readonly SlotGroup[]
  /** Revisions that are gone, with how many runs began under each. */
  readonly missing: ReadonlyMap<number, number>
  readonly odd: readonly OddRun[]
}

/**
 * A worker that stops while Postgres does not answer leaves runs that no row of a worker explains. Rescuers look for such runs once
 * a minute, so one of them is a fault only if it is still there after longer than that.
 */
const UNLISTED_MS = 90_000
const UNLISTED_KEPT = 1000
/** How many slots with the same fault are listed for a schedule; all of them are counted. */
const SLOTS_PER_FAULT = 100

/**
 * Holds the ledger against itself: whether runs follow from their attempts, revisions are there, counts add up, and whether runs
 * that are not over are cared for.
 *
 * Everything is read as of one instant. What looks wrong is looked at once more under the lock of its schedule, where no transaction
 * in flight can explain it, and is then reported; counts are set right.
 */
export class LedgerAudit {
  readonly #db: Db
  readonly #clock: Clock
  /** When runs whose worker is not on the list were seen first. */
  readonly #unlisted = new Map<string, number>()

  constructor({ db, clock }: { readonly db: Db; readonly clock: Clock }) {
    this.#db = db
    this.#clock = clock
  }

  async run(task: LedgerAuditTask): Promise<NewFinding[]> {
    const examined = await readSnapshot(this.#db, (tx) => examine(tx, task))
    const findings: NewFinding[] = []
    for (const { counts } of examined.filter(isSuspect)) findings.push(...(await this.#confirm(counts.id, task)))
    return findings
  }

  /** One at a time: each schedule is locked for as long as its own ledger takes. One that somebody holds is left to the next audit. */
  async #confirm(id: string, task: LedgerAuditTask): Promise<NewFinding[]> {
    return transact(this.#db, this.#clock, async (tx) => {
      const locked = await lockFreeSchedules(tx, { scheduleIds: [id] })
      if (!locked.has(id)) return []
      const [examined] = await examine(tx, { ...task, ids: [id] })
      if (examined === undefined || !isSuspect(examined)) return []
      const { counts, right, faulty, missing, odd } = examined
      const findings = [...missing].map(([revision, runs]) => revisionFinding(counts, revision, runs))
      for (const group of faulty) findings.push(...(await listFaults(tx, group, task)))
      findings.push(...(await this.#judgeOdd(tx, odd, task)))
      if (right !== null) {
        await correctCounts(tx, { id, ...right })
        findings.push(countFinding(counts, right))
      }
      return findings
    })
  }

  async #judgeOdd(tx: Tx, odd: readonly OddRun[], task: LedgerAuditTask): Promise<NewFinding[]> {
    if (odd.length === 0) return []
    const workers = await listLivingWorkers(tx, { now: this.#clock.databaseNow() })
    const lanes = new Set(odd.flatMap((run) => (run.what === 'due' ? [run.lane] : [])))
    const first = lanes.size === 0 ? new Map<string, never>() : await findFirstDue(tx, { lanes: [...lanes] })
    const isFirst = ({ lane, dueAt }: OddRun & { what: 'due' }): boolean => first.get(lane)?.runAt === dueAt
    return odd
      .filter((run) => !this.#mayBeRescued(run, task))
      .flatMap((run) => oddFinding(run, { workers, isFirst, now: task.now }))
  }

  #mayBeRescued(run: OddRun, { now, isAsked }: LedgerAuditTask): boolean {
    if (run.what !== 'held' || run.lostAt !== null) return false
    const seenAt = this.#unlisted.get(run.runId)
    if (isAsked || (seenAt !== undefined && now - seenAt > UNLISTED_MS)) return false
    if (this.#unlisted.size >= UNLISTED_KEPT) this.#unlisted.clear()
    if (seenAt === undefined) this.#unlisted.set(run.runId, now)
    return true
  }
}

async function examine(tx: Tx, { ids, now, legacyUntil, completeSince }: LedgerAuditTask): Promise<Examined[]> {
  const counted = await listAuditedCounts(tx, { ids })
  const groups = Map.groupBy(
    await groupSlots(tx, { ids, legacyUntil: legacyUntil === null ? null : new Date(legacyUntil) }),
    ({ scheduleId }) => scheduleId,
  )
  const odd = Map.groupBy(
    await listOddRuns(tx, { ids, before: new Date(now - OVERDUE_MS) }),
    ({ scheduleId }) => scheduleId,
  )
  return counted
    .filter(({ isBeingPurged }) => !isBeingPurged)
    .map((counts) => {
      const own = groups.get(counts.id) ?? []
      return {
        counts,
        right: rightCounts(counts, own, completeSince),
        faulty: own.filter((group) => faultOf(group) !== null),
        missing: missingRevisions(counts, own),
        odd: odd.get(counts.id) ?? [],
      }
    })
}

function isSuspect({ right, faulty, missing, odd }: Examined): boolean {
  return right !== null || faulty.length > 0 || missing.size > 0 || odd.length > 0
}

function missingRevisions(
  { revision, hasRevision }: AuditedCounts,
  groups: readonly SlotGroup[],
): ReadonlyMap<number, number> {
  const missing = new Map<number, number>(hasRevision ? [] : [[revision, 0]])
  for (const group of groups) {
    if (group.revision === null || group.hasRevision) continue
    missing.set(group.revision, (missing.get(group.revision) ?? 0) + group.slots)
  }
  return missing
}

/**
 * `run_count` counts the runs that were tried or are not over, `failure_count` those that failed. Of an older schedule lines are gone
 * that were counted, so its counts are only known not to be lower than this.
 */
function rightCounts(
  { runCount, failureCount, createdAt }: AuditedCounts,
  groups: readonly SlotGroup[],
  completeSince: number,
): Examined['right'] {
  const sumOf = (isCounted: (group: SlotGroup) => boolean): number =>
    groups.filter(isCounted).reduce((sum, { slots }) => sum + slots, 0)
  const runs = sumOf(({ state, attemptCount }) => state !== null && (attemptCount > 0 || OPEN_STATES.has(state)))
  const failures = sumOf(({ state }) => state === 'failed')
  const isComplete = createdAt > completeSince
  const right = {
    runCount: isComplete ? runs : Math.max(runs, runCount),
    failureCount: isComplete ? failures : Math.max(failures, failureCount),
  }
  return right.runCount === runCount && right.failureCount === failureCount ? null : right
}

const OPEN_STATES: ReadonlySet<string> = new Set(['pending', 'running', 'retrying'])

/** Attempts whose run is gone are told as a lost line. */
function faultOf(group: SlotGroup): SlotFault | { readonly kind: 'slot_lost'; readonly problem: string } | null {
  if (group.state !== null) return judgeSlot(group)
  return { kind: 'slot_lost', problem: 'the ledger has attempts of a slot that has no line' }
}

const REMEDIES = {
  attempt_missing: 'restore the attempts from a backup; the run itself stays as it is',
  run_contradicted:
    'see who wrote to the database by hand, and restore the run from a backup; if nobody did, please report it',
  slot_lost: 'restore the line from a backup',
} as const

async function listFaults(tx: Tx, group: SlotGroup, { legacyUntil }: LedgerAuditTask): Promise<NewFinding[]> {
  const { scheduleId: id, signature, slots: count } = group
  const slots = await listSlotsOfGroup(tx, {
    id,
    signature,
    legacyUntil: legacyUntil === null ? null : new Date(legacyUntil),
    limit: SLOTS_PER_FAULT,
  })
  const more = count > slots.length ? `, and so are ${count - slots.length} later slots` : ''
  const told = (kind: NewFinding['kind'], problem: string, remedy: string): NewFinding[] =>
    slots.map((scheduledFor, at) => ({
      kind,
      scheduleId: id,
      scheduledFor,
      detail: `${problem}${at === slots.length - 1 ? more : ''}: ${remedy}`,
      isRepaired: false,
    }))
  const fault = faultOf(group)
  return fault === null ? [] : told(fault.kind, fault.problem, REMEDIES[fault.kind])
}

function revisionFinding({ id, revision: present }: AuditedCounts, revision: number, runs: number): NewFinding {
  const effect = revision === present ? 'no slot can begin' : 'runs that it began cannot be tried again'
  const detail =
    `revision ${revision}, under which ${runs} runs began, is gone, and ${effect}: restore it from a backup` +
    (revision === present ? ', or edit the schedule' : '')
  return { kind: 'revision_missing', scheduleId: id, scheduledFor: null, detail, isRepaired: false }
}

function countFinding(
  { id, runCount, failureCount }: AuditedCounts,
  right: NonNullable<Examined['right']>,
): NewFinding {
  const detail =
    `the schedule counted ${runCount} runs, ${failureCount} of them failed; its ledger has ${right.runCount} and ` +
    `${right.failureCount}: the counts were set right; nothing is left to do`
  return { kind: 'count_wrong', scheduleId: id, scheduledFor: null, detail, isRepaired: true }
}

/** What is to be known of lanes and workers to judge runs that are not over. */
interface OddContext {
  readonly workers: readonly LivingWorker[]
  readonly isFirst: (run: OddRun & { what: 'due' }) => boolean
  readonly now: number
}

function oddFinding(run: OddRun, { workers, isFirst, now }: OddContext): NewFinding[] {
  const { scheduleId, scheduledFor, runId } = run
  const told = (kind: NewFinding['kind'], detail: string): NewFinding[] => [
    { kind, scheduleId, scheduledFor, detail, isRepaired: false },
  ]
  switch (run.what) {
    case 'turn': {
      const detail = `the run waits for its turn, and no other run of its schedule is open: cancel it (carillon runs cancel ${runId})`
      return told('run_stuck', detail)
    }
    case 'held': {
      const since = run.lostAt === null ? 'is not on the list' : `lost its lease at ${formatInstant(run.lostAt)}`
      const detail = `the run is held by worker ${run.workerId}, which ${since}: see why no rescuer puts it back (carillon doctor)`
      return told('run_without_lease', detail)
    }
    case 'due': {
      // Lanes are named after their kind; see `lane_of` in the schema.
      const [targetKind = ''] = run.lane.split('.')
      const overdueMs = now - run.dueAt
      if (!isPassedOver({ targetKind, overdueMs, isFirstInLane: isFirst(run) }, workers)) return []
      const isServed = workers.some(({ targetKinds }) => targetKinds.includes(targetKind))
      const remedy = isServed
        ? `see what the workers log, and whether anybody holds the row of its schedule (pg_locks), or cancel it (carillon runs cancel ${runId})`
        : `start a worker that serves ${targetKind}, or cancel it (carillon runs cancel ${runId})`
      return told(
        'run_stuck',
        `the run has been due since ${formatInstant(run.dueAt)}, and no worker took it: ${remedy}`,
      )
    }
  }
}
