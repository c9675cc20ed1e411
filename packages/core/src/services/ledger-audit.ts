import type { Clock } from '../clock.ts'
import { BACKLOG_MS, OVERDUE_MS } from '../policy/overdue.ts'
import { listAuditedFailures } from '../store/audited-failures.ts'
import {
  correctCounts,
  groupSlots,
  listAuditedCounts,
  listOddRuns,
  type AuditedCounts,
  type LedgerRange,
  type OddRun,
  type SlotGroup,
} from '../store/audited-ledger.ts'
import type { NewFinding } from '../store/audits.ts'
import { transact, type Db, type Tx } from '../store/database.ts'
import { lockFreeSchedules } from '../store/schedule-lock.ts'
import { readSnapshot } from '../store/snapshot.ts'
import { addSums, countFinding, NO_SUMS, rightCounts, type LedgerSums, type RightCounts } from './ledger-counts.ts'
import { faultOf, listFaults, oddFinding, revisionFinding } from './ledger-findings.ts'
import { OverdueJudge } from './overdue-judge.ts'
import { reportRepairs } from './repair-report.ts'

/** A part of the slots of one schedule, which has more lines than a page. */
interface LedgerPart {
  /** The first slot; null: from the earliest on. */
  readonly from: number | null
  /** Before this slot; null: up to the latest. */
  readonly before: number | null
  /** The sums of the parts before. */
  readonly sums: LedgerSums
}

export interface LedgerAuditTask {
  readonly ids: readonly string[]
  /** Null: all lines of these schedules. */
  readonly part: LedgerPart | null
  readonly now: number
  /** What ended, and schedules that were made, up to this instant is of an older version; null: nothing is. */
  readonly legacyUntil: number | null
  /** All runs of a schedule that was made after this instant are in the ledger; of an older one some may be gone. */
  readonly completeSince: number
  /** Somebody waits for the answer: what can only be told after a while is told at once. */
  readonly isAsked: boolean
}

export interface LedgerAuditResult {
  readonly findings: readonly NewFinding[]
  /** Of this part and those before. */
  readonly sums: LedgerSums
}

/** What is wrong with one schedule, or looks so. */
interface Examined {
  readonly counts: AuditedCounts
  readonly sums: LedgerSums
  /** The counts as they should be; null if they are right, or are not known from one part. */
  readonly right: RightCounts | null
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
/** How many runs and schedules are remembered that looked wrong once. */
const SUSPECTS_KEPT = 100_000

/**
 * Holds the ledger against itself: whether runs follow from their attempts, revisions are there, counts add up, and whether runs
 * that are not over are cared for.
 *
 * Everything is read as of one instant. What looks wrong is looked at once more under the lock of its schedule, where no transaction
 * in flight can explain it, and is then reported; counts are set right. If another transaction holds the schedule, only what has been
 * overdue for long is reported.
 */
export class LedgerAudit {
  readonly #db: Db
  readonly #clock: Clock
  /** When runs whose worker is not on the list were seen first. */
  readonly #unlisted = new Map<string, number>()
  /** Schedules of several pages whose counts looked wrong, with by how much. */
  readonly #miscounted = new Map<string, string>()

  constructor({ db, clock }: { readonly db: Db; readonly clock: Clock }) {
    this.#db = db
    this.#clock = clock
  }

  async run(task: LedgerAuditTask): Promise<LedgerAuditResult> {
    const examined = await readSnapshot(this.#db, (tx) => examine(tx, task))
    const findings: NewFinding[] = []
    for (const { counts } of examined.filter(isSuspect)) findings.push(...(await this.#confirm(counts.id, task)))
    const [first] = examined
    if (task.part === null || first === undefined) return { findings, sums: task.part?.sums ?? NO_SUMS }
    if (isEnd(task)) findings.push(...(await this.#confirmSums(first, task)))
    return { findings, sums: first.sums }
  }

  /** One at a time: each schedule is locked for as long as one page takes. */
  async #confirm(id: string, task: LedgerAuditTask): Promise<NewFinding[]> {
    return transact(this.#db, this.#clock, async (tx) => {
      const locked = await lockFreeSchedules(tx, { scheduleIds: [id] })
      if (!locked.has(id)) return this.#judgeHeld(tx, id, task)
      const [examined] = await examine(tx, { ...task, ids: [id] })
      if (examined === undefined || !isSuspect(examined)) return []
      const { counts, right, faulty, missing, odd } = examined
      const findings = [...missing].map(([revision, runs]) => revisionFinding(counts, revision, runs))
      for (const group of faulty) findings.push(...(await listFaults(tx, group, rangeOf(task))))
      findings.push(...(await this.#judgeOdd(tx, odd, task, false)))
      if (right !== null) findings.push(await this.#correct(tx, counts, right, task.now))
      return findings
    })
  }

  /** What somebody holds is being seen to, unless it has been overdue for long. */
  async #judgeHeld(tx: Tx, id: string, task: LedgerAuditTask): Promise<NewFinding[]> {
    if (!isEnd(task)) return []
    const before = task.now - BACKLOG_MS
    const odd = (await listOddRuns(tx, { ids: [id], before: new Date(before) })).filter(
      (run) => (run.what === 'due' && run.dueAt < before) || (run.what === 'held' && run.lostAt !== null),
    )
    return this.#judgeOdd(tx, odd, task, true)
  }

  async #judgeOdd(tx: Tx, odd: readonly OddRun[], task: LedgerAuditTask, isHeld: boolean): Promise<NewFinding[]> {
    if (odd.length === 0) return []
    const lanes = odd.flatMap((run) => (run.what === 'due' ? [run.lane] : []))
    const judge = await OverdueJudge.read(tx, { lanes, now: task.now, databaseNow: this.#clock.databaseNow() })
    return odd.filter((run) => !this.#mayBeRescued(run, task)).flatMap((run) => oddFinding(run, judge, isHeld))
  }

  #mayBeRescued(run: OddRun, { now, isAsked }: LedgerAuditTask): boolean {
    if (run.what !== 'held' || run.lostAt !== null) return false
    const seenAt = this.#unlisted.get(run.runId)
    if (isAsked || (seenAt !== undefined && now - seenAt > UNLISTED_MS)) return false
    if (seenAt === undefined) remember(this.#unlisted, run.runId, now)
    return true
  }

  /**
   * The parts of a schedule were read at different instants. Nothing is said of its counts while a run of an earlier part is not over:
   * it may have ended in between. Else they are wrong if they were as wrong the last time, or if somebody waits for the answer. They
   * are corrected by the difference: reading all lines under the lock would hold it for too long.
   */
  async #confirmSums(
    { counts, sums }: Examined,
    { part, completeSince, now, isAsked }: LedgerAuditTask,
  ): Promise<NewFinding[]> {
    const { id } = counts
    const right = rightCounts(counts, sums, { completeSince, failures: undefined })
    const before = this.#miscounted.get(id)
    this.#miscounted.delete(id)
    if (right === null || (part?.sums.open ?? 0) > 0) return []
    const [runs, failures] = [right.runCount - counts.runCount, right.failureCount - counts.failureCount]
    const difference = `${runs} ${failures}`
    if (!isAsked && before !== difference) {
      remember(this.#miscounted, id, difference)
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
    const finding = countFinding(counts, right)
    await reportRepairs(tx, { findings: [finding], now, databaseNow: this.#clock.databaseNow() })
    return finding
  }
}

/** The oldest goes if there are too many. */
function remember<Value>(map: Map<string, Value>, key: string, value: Value): void {
  const [oldest] = map.keys()
  if (map.size >= SUSPECTS_KEPT && oldest !== undefined) map.delete(oldest)
  map.set(key, value)
}

/** Whether the last line of the schedules is in it. */
function isEnd({ part }: LedgerAuditTask): boolean {
  return part === null || part.before === null
}

function rangeOf({ ids, part, legacyUntil }: LedgerAuditTask): LedgerRange {
  const legacy = legacyUntil === null ? null : new Date(legacyUntil)
  return { ids, from: part?.from ?? null, before: part?.before ?? null, legacyUntil: legacy }
}

async function examine(tx: Tx, task: LedgerAuditTask): Promise<Examined[]> {
  const { ids, part, now, completeSince } = task
  const counted = await listAuditedCounts(tx, { ids })
  const groups = Map.groupBy(await groupSlots(tx, rangeOf(task)), ({ scheduleId }) => scheduleId)
  const failures = new Map(
    part === null ? (await listAuditedFailures(tx, { ids })).map((failed) => [failed.id, failed]) : [],
  )
  const odd = Map.groupBy(
    isEnd(task) ? await listOddRuns(tx, { ids, before: new Date(now - OVERDUE_MS) }) : [],
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
