import { CadenceCache } from '../cadences/cadence-cache.ts'
import { type Db, type Tx } from '../db/database.ts'
import { lockFreeSchedules } from '../db/locks.ts'
import { readSnapshot, transact } from '../db/transact.ts'
import type { Clock } from '../kernel/clock.ts'
import { EventLoopYield } from '../kernel/event-loop-yield.ts'
import { identifierAt } from '../kernel/ids.ts'
import { LONG_OVERDUE_MS, OVERDUE_MS } from '../policy/overdue.ts'
import { CHANGE_RACE_MS, compareWithLedger, type AuditWindow, type SlotVerdict } from './expected-slots.ts'
import { lockedLostSlotFinding, lostSlotFinding, pastDueFinding, unknownSlotFinding } from './finding-texts.ts'
import { insertRepairs } from './findings.ts'
import { OverdueCheck } from './overdue.ts'
import type { ComparedCounts } from './store/audits.ts'
import type { NewFinding } from './store/findings.ts'
import {
  listAuditedLines,
  listAuditedSchedules,
  listBacklogRanges,
  restoreLines,
  type AuditedLines,
  type AuditedSchedule,
  type BacklogRange,
} from './store/slots.ts'

export interface SlotAuditDeps {
  readonly db: Db
  readonly clock: Clock
}

/** The schedules, and the window of their slots, that one call of `run` compares with the ledger. */
export interface SlotAuditRequest {
  /** The ids of the schedules. */
  readonly ids: readonly string[]
  /** The slots to compare. */
  readonly window: AuditWindow
  readonly now: number
}

export interface SlotAuditResult {
  readonly counts: ComparedCounts
  /** The schedules as the first pass read them. */
  readonly schedules: readonly AuditedSchedule[]
  readonly findings: readonly NewFinding[]
  /** Schedules that looked wrong while another transaction had them locked: compare them again later. */
  readonly busyIds: readonly string[]
}

/** Schedules with their lines, and with the slots whose lines the backlog writer still has to insert. */
interface ReadSchedules {
  readonly schedules: readonly AuditedSchedule[]
  readonly lines: ReadonlyMap<string, AuditedLines>
  readonly backlogs: ReadonlyMap<string, readonly BacklogRange[]>
}

interface Judged {
  readonly schedule: AuditedSchedule
  /** Undefined if the spec cannot be read, or if its slots cannot be found. */
  readonly verdict: SlotVerdict | undefined
}

/**
 * The most slots of one span, and the most lines of one schedule, that are compared in one window. Beyond it only the earliest slots are
 * compared, and the schedule counts as truncated. 10,000 holds a day of slots that are nine seconds apart.
 */
const SLOTS_MAX = 10_000
/** How many parsed cadences are cached. A full audit reads the cadence of every schedule; most of them it reads only once. */
const CADENCES_MAX = 1000
/** How many schedules one transaction locks to confirm what looks wrong. */
const SCHEDULES_PER_CONFIRM = 20
/** How many lines one such transaction inserts. The next transaction inserts the rest. */
const LINES_PER_REPAIR = 1000
/** How many such transactions one call of `run` makes. A slice must end within its turn, however many slots were lost. */
const REPAIRS_PER_RUN = 20
/** For how long lines may be missing because a change left them to the backlog writer. After that their slots count as lost. */
const BACKLOG_EXCUSED_MS = 3_600_000
/** How many lost slots one call of `run` reports for a schedule that another transaction has locked. */
const LOCKED_SLOTS_REPORTED = 100
const NO_LINES: AuditedLines = { scheduled: [], manual: [] }

/**
 * Compares the ledger with the specs: which slots of a window came due, and whether each has its line. Inserts the lines of lost slots.
 *
 * The first pass reads one snapshot. A schedule that looks wrong is locked and read again. What still looks wrong cannot be the work of
 * an open transaction, so it is reported and repaired. If another transaction has the schedule locked, only slots that have been overdue
 * for long are reported.
 */
export class SlotAudit {
  readonly #deps: SlotAuditDeps
  /** One cache for all windows and schedules: most windows share their hours, and most schedules share their cadence with others. */
  readonly #cadences = new CadenceCache({ cadencesMax: CADENCES_MAX })
  readonly #yield: EventLoopYield

  constructor(deps: SlotAuditDeps) {
    this.#deps = deps
    this.#yield = new EventLoopYield(deps.clock)
  }

  async run(task: SlotAuditRequest): Promise<SlotAuditResult> {
    const read = await readSnapshot(this.#deps.db, (tx) => readSchedules(tx, task.ids, task))
    const counts = { schedules: read.schedules.length, slots: 0, unreadable: 0, truncated: 0 }
    const suspects: string[] = []
    for (const schedule of read.schedules) {
      await this.#yield.next()
      const verdict = this.#judge(schedule, read, task.window)
      if (verdict === undefined) counts.unreadable += 1
      counts.slots += verdict?.expected ?? 0
      if (verdict !== undefined && verdict.until < task.window.to) counts.truncated += 1
      if (isSuspect(verdict) || isOverdue(schedule, task.now, OVERDUE_MS)) suspects.push(schedule.id)
    }
    return { counts, schedules: read.schedules, ...(await this.#confirmAll(suspects, task)) }
  }

  /** Undefined if the spec cannot be read or its slots cannot be found. Only this schedule is left out: begin pauses it and says why. */
  #judge(schedule: AuditedSchedule, read: ReadSchedules, window: AuditWindow): SlotVerdict | undefined {
    const backlogs = read.backlogs.get(schedule.id) ?? []
    const lines = read.lines.get(schedule.id) ?? NO_LINES
    const limits = { slotsMax: SLOTS_MAX, linesMax: SLOTS_MAX }
    try {
      return compareWithLedger(schedule, lines, { window, cadences: this.#cadences, ...limits, backlogs })
    } catch {
      return undefined
    }
  }

  async #confirmAll(
    ids: readonly string[],
    task: SlotAuditRequest,
  ): Promise<Pick<SlotAuditResult, 'findings' | 'busyIds'>> {
    const findings: NewFinding[] = []
    const busyIds: string[] = []
    let repairs = 0
    for (let start = 0; start < ids.length && repairs < REPAIRS_PER_RUN; start += SCHEDULES_PER_CONFIRM) {
      let left = ids.slice(start, start + SCHEDULES_PER_CONFIRM)
      // The next audit finds what is still left when the limit is reached.
      while (left.length > 0 && repairs < REPAIRS_PER_RUN) {
        repairs += 1
        const confirmed = await this.#confirm(left, task)
        findings.push(...confirmed.findings)
        busyIds.push(...confirmed.busyIds)
        left = confirmed.left
      }
    }
    return { findings, busyIds }
  }

  /** @returns `left`: schedules with more lost slots than one transaction restores */
  async #confirm(
    ids: readonly string[],
    task: SlotAuditRequest,
  ): Promise<{ findings: NewFinding[]; busyIds: string[]; left: string[] }> {
    const { db, clock } = this.#deps
    const { window, now } = task
    return transact(db, clock, async (tx) => {
      const locked = await lockFreeSchedules(tx, { scheduleIds: ids })
      const read = await readSchedules(tx, ids, task)
      const all = read.schedules.map((schedule) => ({ schedule, verdict: this.#judge(schedule, read, window) }))
      const own = all.filter(({ schedule }) => locked.has(schedule.id))
      const busy = all.filter(({ schedule }) => !locked.has(schedule.id))
      const { findings, left } = await this.#restore(tx, own, now)
      // Unknown slots and overdue schedules are reported with the last portion of their schedule, so that each is reported once.
      const done = own.filter(({ schedule }) => !left.includes(schedule.id))
      findings.push(
        ...done.flatMap(({ schedule, verdict }) =>
          (verdict?.unknown ?? []).map((slot) => unknownSlotFinding(schedule.id, slot)),
        ),
        ...busy.flatMap((judged) => lockedLostSlots(judged, now)),
      )
      const overdue = [
        ...done.filter(({ schedule }) => isOverdue(schedule, now, OVERDUE_MS)),
        ...busy.filter(({ schedule }) => isOverdue(schedule, now, LONG_OVERDUE_MS)),
      ].map(({ schedule }) => schedule)
      findings.push(...(await this.#findPastDue(tx, overdue, { locked, now })))
      await insertRepairs(tx, { findings, now, databaseNow: clock.databaseNow() })
      return { findings, busyIds: ids.filter((id) => !locked.has(id)), left }
    })
  }

  /** Inserts the lines of lost slots, up to as many as one transaction writes. */
  async #restore(tx: Tx, judged: readonly Judged[], now: number): Promise<{ findings: NewFinding[]; left: string[] }> {
    const lost = judged.flatMap(({ schedule, verdict }) =>
      (verdict?.lost ?? []).map(({ slot, revision }) => ({
        id: identifierAt(now),
        scheduleId: schedule.id,
        scheduledFor: slot,
        revision,
      })),
    )
    if (lost.length === 0) return { findings: [], left: [] }
    const lines = lost.slice(0, LINES_PER_REPAIR)
    const restored = await restoreLines(tx, { lines, now: this.#deps.clock.databaseNow() })
    return {
      findings: lines.map((line) => lostSlotFinding(line, restored.get(line.id))),
      left: [...new Set(lost.slice(LINES_PER_REPAIR).map(({ scheduleId }) => scheduleId))],
    }
  }

  async #findPastDue(
    tx: Tx,
    overdue: readonly AuditedSchedule[],
    { locked, now }: { readonly locked: ReadonlySet<string>; readonly now: number },
  ): Promise<NewFinding[]> {
    if (overdue.length === 0) return []
    const lanes = overdue.map(({ lane }) => lane)
    const check = await OverdueCheck.read(tx, { lanes, now, databaseNow: this.#deps.clock.databaseNow() })
    return overdue.flatMap((schedule) => {
      const { id, lane, dueAt } = schedule
      if (dueAt === null || !check.isStuck({ lane, dueAt }, 'slotAt')) return []
      return [pastDueFinding(schedule, dueAt, check.remedy(lane, !locked.has(id)))]
    })
  }
}

/** Reads backlogs before lines: see `listBacklogRanges`. */
async function readSchedules(
  tx: Tx,
  ids: readonly string[],
  { window, now }: SlotAuditRequest,
): Promise<ReadSchedules> {
  const [from, to] = [new Date(window.from), new Date(window.to)]
  const schedules = await listAuditedSchedules(tx, { ids, from: new Date(window.from - CHANGE_RACE_MS), to })
  const scheduleIds = schedules.map(({ id }) => id)
  const backlogs = await listBacklogRanges(tx, { scheduleIds, madeAfter: new Date(now - BACKLOG_EXCUSED_MS) })
  return { schedules, backlogs, lines: await listAuditedLines(tx, { scheduleIds, from, to, limit: SLOTS_MAX }) }
}

function isSuspect(verdict: SlotVerdict | undefined): boolean {
  return verdict !== undefined && (verdict.lost.length > 0 || verdict.unknown.length > 0)
}

function isOverdue({ dueAt }: AuditedSchedule, now: number, ms: number): boolean {
  return dueAt !== null && now - dueAt > ms
}

/** Lost slots of a schedule that another transaction has locked. That transaction may still insert the line of a recent slot. */
function lockedLostSlots({ schedule, verdict }: Judged, now: number): NewFinding[] {
  return (verdict?.lost ?? [])
    .filter(({ slot }) => now - slot > LONG_OVERDUE_MS)
    .slice(0, LOCKED_SLOTS_REPORTED)
    .map(({ slot, revision }) => lockedLostSlotFinding(schedule.id, slot, revision))
}
