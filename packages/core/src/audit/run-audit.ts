import { LRUCache } from 'lru-cache'

import { type Db, type Tx } from '../db/database.ts'
import { lockFreeSchedules } from '../db/locks.ts'
import { readSnapshot, transact } from '../db/transact.ts'
import type { Clock } from '../kernel/clock.ts'
import { judgeSlot, type SlotFault } from '../policy/ledger-slot.ts'
import { LONG_OVERDUE_MS, OVERDUE_MS } from '../policy/overdue.ts'
import {
  FAULT_REMEDIES,
  missingRevisionFinding,
  overdueRunFinding,
  unattendedRunFinding,
  wrongCountFinding,
} from './finding-texts.ts'
import { insertRepairs } from './findings.ts'
import { OverdueCheck } from './overdue.ts'
import { addSums, missingRevisions, NO_SUMS, rightCounts, type LedgerSums, type RightCounts } from './run-counts.ts'
import type { NewFinding } from './store/findings.ts'
import { listUnattendedRuns, type UnattendedRun } from './store/open-runs.ts'
import { correctCounts, listAuditedCounts, listAuditedFailures, type AuditedCounts } from './store/schedule-counts.ts'
import { groupSlots, listSlotsOfGroup, type LedgerRange, type SlotGroup } from './store/slot-groups.ts'

/** The slots of one schedule that are on one page, if its lines do not fit one page. */
interface LedgerPart {
  /** The first slot; null: no lower bound. */
  readonly from: number | null
  /** Exclusive: the first slot behind the range; null: no upper bound. */
  readonly before: number | null
  /** The sums of the parts before this one. */
  readonly sums: LedgerSums
}

export interface RunAuditRange {
  readonly ids: readonly string[]
  /** Null: all lines of these schedules. */
  readonly part: LedgerPart | null
  readonly now: number
  /** Runs that ended up to this instant were written by an older version of Carillon; null: none were. */
  readonly legacyUntil: number | null
  /** All runs of a schedule that was created after this instant are in the ledger. Some runs of an older schedule may have been dropped. */
  readonly completeSince: number
  /** True if a person waits for the result: then a suspicion that otherwise needs a second look is reported at once. */
  readonly isRequested: boolean
}

export interface RunAuditResult {
  readonly findings: readonly NewFinding[]
  /** The sums of this part and the parts before it. */
  readonly sums: LedgerSums
}

/** What is wrong with one schedule, or looks wrong. */
interface Examined {
  readonly counts: AuditedCounts
  readonly sums: LedgerSums
  /** The counts as they should be; null if they are right, or if only a part of the lines was read. */
  readonly right: RightCounts | null
  readonly faulty: readonly SlotGroup[]
  /** Revisions whose rows are gone, with the number of runs that began under each. */
  readonly missing: ReadonlyMap<number, number>
  readonly unattended: readonly UnattendedRun[]
}

/**
 * A worker that stops while Postgres does not answer leaves runs whose worker has no row. Rescuers look for such runs once a minute, so
 * such a run is a fault only if it is still there after this time.
 */
const RESCUE_MS = 90_000
/**
 * How many runs, and how many schedules, that looked wrong once are remembered for a second look. Beyond it the one that was looked at
 * longest ago is dropped. A weight per entry instead of `max`, for which lru-cache allocates all entries in advance.
 */
const SUSPECTS = { maxSize: 100_000, sizeCalculation: () => 1 }
/** How many slots with the same fault are listed for a schedule; the text counts all of them. */
const SLOTS_PER_FAULT = 100

/**
 * Checks the ledger against itself: whether runs follow from their attempts, revisions exist, counts add up, and whether workers take
 * care of the open runs.
 *
 * The first pass reads one snapshot. A schedule that looks wrong is locked and read again. What still looks wrong cannot be the work of
 * an open transaction, so it is reported; counts are corrected. If another transaction has the schedule locked, only runs that have been
 * overdue for long are reported.
 */
export class RunAudit {
  readonly #db: Db
  readonly #clock: Clock
  /** When the audit first saw a run whose worker has no row, by run id. */
  readonly #withoutWorker = new LRUCache<string, number>(SUSPECTS)
  /** The difference of the counts that looked wrong, by schedule id. Only schedules whose lines are on several pages are here. */
  readonly #miscounted = new LRUCache<string, string>(SUSPECTS)

  constructor({ db, clock }: { readonly db: Db; readonly clock: Clock }) {
    this.#db = db
    this.#clock = clock
  }

  async run(task: RunAuditRange): Promise<RunAuditResult> {
    const examined = await readSnapshot(this.#db, (tx) => examine(tx, task))
    const findings: NewFinding[] = []
    for (const { counts } of examined.filter(isSuspect)) findings.push(...(await this.#confirm(counts.id, task)))
    const [first] = examined
    if (task.part === null || first === undefined) return { findings, sums: task.part?.sums ?? NO_SUMS }
    if (isLastPart(task)) findings.push(...(await this.#confirmSums(first, task)))
    return { findings, sums: first.sums }
  }

  /** One schedule per transaction: its row stays locked for as long as reading one page takes. */
  async #confirm(id: string, task: RunAuditRange): Promise<NewFinding[]> {
    return transact(this.#db, this.#clock, async (tx) => {
      const locked = await lockFreeSchedules(tx, { scheduleIds: [id] })
      if (!locked.has(id)) return this.#checkLocked(tx, id, task)
      const [examined] = await examine(tx, { ...task, ids: [id] })
      if (examined === undefined || !isSuspect(examined)) return []
      const { counts, right, faulty, missing, unattended } = examined
      const findings = [...missing].map(([revision, runs]) => missingRevisionFinding(counts, revision, runs))
      for (const group of faulty) findings.push(...(await listFaults(tx, group, rangeOf(task))))
      findings.push(...(await this.#checkUnattended(tx, unattended, task, false)))
      if (right !== null) findings.push(await this.#correct(tx, counts, right, task.now))
      return findings
    })
  }

  /** Another transaction has the schedule locked and may be about to take its runs. Only runs that have been overdue for long count. */
  async #checkLocked(tx: Tx, id: string, task: RunAuditRange): Promise<NewFinding[]> {
    if (!isLastPart(task)) return []
    const before = task.now - LONG_OVERDUE_MS
    const runs = (await listUnattendedRuns(tx, { ids: [id], before: new Date(before) })).filter(
      (run) => (run.what === 'due' && run.dueAt < before) || (run.what === 'held' && run.lostAt !== null),
    )
    return this.#checkUnattended(tx, runs, task, true)
  }

  async #checkUnattended(
    tx: Tx,
    runs: readonly UnattendedRun[],
    task: RunAuditRange,
    isRowLocked: boolean,
  ): Promise<NewFinding[]> {
    if (runs.length === 0) return []
    const lanes = runs.flatMap((run) => (run.what === 'due' ? [run.lane] : []))
    const check = await OverdueCheck.read(tx, { lanes, now: task.now, databaseNow: this.#clock.databaseNow() })
    return runs.flatMap((run) => {
      if (run.what !== 'due') return this.#mayBeRescued(run, task) ? [] : [unattendedRunFinding(run, isRowLocked)]
      return check.isStuck(run, 'runAt')
        ? [overdueRunFinding(run, check.remedy(run.lane, isRowLocked), isRowLocked)]
        : []
    })
  }

  #mayBeRescued(run: UnattendedRun, { now, isRequested }: RunAuditRange): boolean {
    if (run.what !== 'held' || run.lostAt !== null) return false
    const seenAt = this.#withoutWorker.get(run.runId)
    if (isRequested || (seenAt !== undefined && now - seenAt > RESCUE_MS)) return false
    if (seenAt === undefined) this.#withoutWorker.set(run.runId, now)
    return true
  }

  /**
   * Checks the counts of a schedule whose lines are on several pages, which were read at different instants. If an earlier page had an
   * open run, that run may have ended in between, so the counts are not judged. Otherwise a difference is a fault if the last full audit
   * saw the same one, or if a person waits for the result. The counts are corrected by the difference: reading all lines again under the
   * lock would hold the lock for too long.
   */
  async #confirmSums(
    { counts, sums }: Examined,
    { part, completeSince, now, isRequested }: RunAuditRange,
  ): Promise<NewFinding[]> {
    const { id } = counts
    const right = rightCounts(counts, sums, { completeSince, failures: undefined })
    const before = this.#miscounted.get(id)
    this.#miscounted.delete(id)
    if (right === null || (part?.sums.open ?? 0) > 0) return []
    const [runs, failures] = [right.runCount - counts.runCount, right.failureCount - counts.failureCount]
    const difference = `${runs} ${failures}`
    if (!isRequested && before !== difference) {
      this.#miscounted.set(id, difference)
      return []
    }
    return transact(this.#db, this.#clock, async (tx) => {
      const locked = await lockFreeSchedules(tx, { scheduleIds: [id] })
      const [present] = locked.has(id) ? await listAuditedCounts(tx, { ids: [id] }) : []
      if (present === undefined) return []
      const { runCount, failureCount, consecutiveFailures } = present
      const corrected = { runCount: runCount + runs, failureCount: failureCount + failures, consecutiveFailures }
      return [await this.#correct(tx, present, corrected, now)]
    })
  }

  async #correct(tx: Tx, counts: AuditedCounts, right: RightCounts, now: number): Promise<NewFinding> {
    await correctCounts(tx, { id: counts.id, ...right })
    const finding = wrongCountFinding(counts, right)
    await insertRepairs(tx, { findings: [finding], now, databaseNow: this.#clock.databaseNow() })
    return finding
  }
}

/** True if the task includes the last line of its schedules. */
function isLastPart({ part }: RunAuditRange): boolean {
  return part === null || part.before === null
}

function rangeOf({ ids, part, legacyUntil }: RunAuditRange): LedgerRange {
  const legacy = legacyUntil === null ? null : new Date(legacyUntil)
  return { ids, from: part?.from ?? null, before: part?.before ?? null, legacyUntil: legacy }
}

async function examine(tx: Tx, task: RunAuditRange): Promise<Examined[]> {
  const { ids, part, now, completeSince } = task
  const counted = await listAuditedCounts(tx, { ids })
  const groups = Map.groupBy(await groupSlots(tx, rangeOf(task)), ({ scheduleId }) => scheduleId)
  const failures = new Map(
    part === null ? (await listAuditedFailures(tx, { ids })).map((failed) => [failed.id, failed]) : [],
  )
  const unattended = Map.groupBy(
    isLastPart(task) ? await listUnattendedRuns(tx, { ids, before: new Date(now - OVERDUE_MS) }) : [],
    ({ scheduleId }) => scheduleId,
  )
  return counted
    .filter(({ isBeingPurged }) => !isBeingPurged)
    .map((counts) => {
      const own = groups.get(counts.id) ?? []
      const sums = addSums(part?.sums ?? NO_SUMS, own)
      return {
        counts,
        sums,
        right: part === null ? rightCounts(counts, sums, { completeSince, failures: failures.get(counts.id) }) : null,
        faulty: own.filter((group) => faultOf(group) !== null),
        missing: missingRevisions(counts, own),
        unattended: unattended.get(counts.id) ?? [],
      }
    })
}

function isSuspect({ right, faulty, missing, unattended }: Examined): boolean {
  return right !== null || faulty.length > 0 || missing.size > 0 || unattended.length > 0
}

/** Attempts without a run are reported as a lost line. */
function faultOf(group: SlotGroup): SlotFault | { readonly kind: 'slot_lost'; readonly problem: string } | null {
  if (group.state !== null) return judgeSlot(group)
  return { kind: 'slot_lost', problem: 'the ledger has attempts of a slot that has no line' }
}

async function listFaults(tx: Tx, group: SlotGroup, range: LedgerRange): Promise<NewFinding[]> {
  const { scheduleId: id, signature, slots: count } = group
  const fault = faultOf(group)
  if (fault === null) return []
  const slots = await listSlotsOfGroup(tx, { ...range, ids: [id], signature, limit: SLOTS_PER_FAULT })
  const more = count > slots.length ? `, and so are ${count - slots.length} later slots` : ''
  return slots.map((scheduledFor, at) => ({
    kind: fault.kind,
    scheduleId: id,
    scheduledFor,
    detail: `${fault.problem}${at === slots.length - 1 ? more : ''}: ${FAULT_REMEDIES[fault.kind]}`,
    isRepaired: false,
  }))
}
