import type { Clock } from '../clock.ts'
import { identifierAt } from '../identifier.ts'
import { BACKLOG_MS, OVERDUE_MS } from '../policy/overdue.ts'
import type { RunState } from '../policy/run-state.ts'
import { listAuditedLines, listBacklogRanges, type AuditedLines, type SlotRange } from '../store/audited-lines.ts'
import { listAuditedSchedules, type AuditedSchedule } from '../store/audited-schedules.ts'
import type { NewFinding } from '../store/audits.ts'
import { transact, type Db, type Tx } from '../store/database.ts'
import { restoreLines } from '../store/restored-lines.ts'
import { lockFreeSchedules } from '../store/schedule-lock.ts'
import { readSnapshot } from '../store/snapshot.ts'
import { CHANGE_RACE_MS, compareSlots, type SlotVerdict } from './expected-slots.ts'
import { formatInstant } from './finding-text.ts'
import { OverdueJudge } from './overdue-judge.ts'
import { reportRepairs } from './repair-report.ts'
import type { SpecCache } from './spec-cache.ts'
import type { TimeSlices } from './time-slices.ts'

export interface SlotAuditDeps {
  readonly db: Db
  readonly clock: Clock
  readonly slices: TimeSlices
}

export interface SlotAuditTask {
  /** Of the schedules. */
  readonly ids: readonly string[]
  /** What the specs say of the window of slots that is compared. */
  readonly specs: SpecCache
  readonly now: number
}

export interface SlotAuditCounts {
  readonly schedules: number
  readonly slots: number
  /** Schedules whose spec can no longer be read, or searched. */
  readonly unreadable: number
  /** Schedules with more slots than one audit compares: only the earliest were. */
  readonly truncated: number
}

export interface SlotAuditResult {
  readonly counts: SlotAuditCounts
  /** As they were read. */
  readonly schedules: readonly AuditedSchedule[]
  readonly findings: readonly NewFinding[]
  /** Schedules of which something looked wrong and that somebody held: they are to be looked at again. */
  readonly heldIds: readonly string[]
}

/** Schedules, their lines, and which of their slots are still to be written. */
interface ReadSchedules {
  readonly schedules: readonly AuditedSchedule[]
  readonly lines: ReadonlyMap<string, AuditedLines>
  readonly backlogs: ReadonlyMap<string, readonly SlotRange[]>
}

/** Of one schedule in one window: every nine seconds for a day. */
export const SLOTS_MAX = 10_000
/** How many schedules are locked at a time to look at them again, and how many lines one transaction writes. */
const SCHEDULES_PER_CONFIRM = 20
const LINES_PER_REPAIR = 1000
/** How many such transactions one run makes at most: a slice has to end within its turn, whatever was lost. */
const REPAIRS_PER_RUN = 20
/** For how long lines may be missing that a change left to be written. */
const BACKLOG_EXCUSED_MS = 3_600_000
/** Of one schedule, at a time. */
const HELD_SLOTS_TOLD = 100
const NO_LINES: AuditedLines = { scheduled: [], manual: [] }

/**
 * Holds the ledger against the specs: which slots of a window came due, and whether each has its line. Gives lost slots their line.
 *
 * Everything is read as of one instant. What looks wrong is looked at once more under the lock of its schedule, where no transaction
 * in flight can explain it, and is then reported and repaired. If another transaction holds the schedule, only what has been overdue
 * for long is reported.
 */
export class SlotAudit {
  readonly #deps: SlotAuditDeps

  constructor(deps: SlotAuditDeps) {
    this.#deps = deps
  }

  async run(task: SlotAuditTask): Promise<SlotAuditResult> {
    const read = await readSnapshot(this.#deps.db, (tx) => readSchedules(tx, task.ids, task))
    const counts = { schedules: read.schedules.length, slots: 0, unreadable: 0, truncated: 0 }
    const suspects: string[] = []
    for (const schedule of read.schedules) {
      await this.#deps.slices.next()
      const verdict = judge(schedule, read, task.specs)
      if (verdict === undefined) counts.unreadable += 1
      counts.slots += verdict?.expected ?? 0
      if (verdict !== undefined && verdict.until < task.specs.window.to) counts.truncated += 1
      if (isSuspect(verdict) || isOverdue(schedule, task.now, OVERDUE_MS)) suspects.push(schedule.id)
    }
    return { counts, schedules: read.schedules, ...(await this.#confirmAll(suspects, task)) }
  }

  async #confirmAll(
    ids: readonly string[],
    task: SlotAuditTask,
  ): Promise<Pick<SlotAuditResult, 'findings' | 'heldIds'>> {
    const findings: NewFinding[] = []
    const heldIds: string[] = []
    let repairs = 0
    for (let start = 0; start < ids.length && repairs < REPAIRS_PER_RUN; start += SCHEDULES_PER_CONFIRM) {
      let left = ids.slice(start, start + SCHEDULES_PER_CONFIRM)
      // What is left after that is found again by the next audit.
      while (left.length > 0 && repairs < REPAIRS_PER_RUN) {
        repairs += 1
        const confirmed = await this.#confirm(left, task)
        findings.push(...confirmed.findings)
        heldIds.push(...confirmed.heldIds)
        left = confirmed.left
      }
    }
    return { findings, heldIds }
  }

  /** @returns `left` are those with more lost slots than one transaction writes */
  async #confirm(
    ids: readonly string[],
    task: SlotAuditTask,
  ): Promise<{ findings: NewFinding[]; heldIds: string[]; left: string[] }> {
    const { db, clock } = this.#deps
    const { specs, now } = task
    return transact(db, clock, async (tx) => {
      const locked = await lockFreeSchedules(tx, { scheduleIds: ids })
      const heldIds = ids.filter((id) => !locked.has(id))
      const read = await readSchedules(tx, ids, task)
      const all = read.schedules.map((schedule) => ({ schedule, verdict: judge(schedule, read, specs) }))
      const judged = all.filter(({ schedule }) => locked.has(schedule.id))
      const held = all.filter(({ schedule }) => !locked.has(schedule.id))
      const lost = judged.flatMap(({ schedule, verdict }) =>
        (verdict?.lost ?? []).map(({ slot, revision }) => ({
          id: identifierAt(now),
          scheduleId: schedule.id,
          scheduledFor: slot,
          revision,
        })),
      )
      const lines = lost.slice(0, LINES_PER_REPAIR)
      const restored =
        lines.length === 0 ? new Map<string, RunState>() : await restoreLines(tx, { lines, now: clock.databaseNow() })
      const findings = lines.map(({ id, scheduleId, scheduledFor, revision }) =>
        lostFinding(scheduleId, scheduledFor, revision, restored.get(id)),
      )
      const left = [...new Set(lost.slice(LINES_PER_REPAIR).map(({ scheduleId }) => scheduleId))]
      // Told with the last portion, so that each is told once.
      const whole = judged.filter(({ schedule }) => !left.includes(schedule.id))
      for (const { schedule, verdict } of whole) {
        for (const slot of verdict?.unknown ?? []) findings.push(unknownFinding(schedule, slot))
      }
      findings.push(...held.flatMap(({ schedule, verdict }) => heldFindings(schedule, verdict, now)))
      const overdue = [
        ...whole.filter(({ schedule }) => isOverdue(schedule, now, OVERDUE_MS)),
        ...held.filter(({ schedule }) => isOverdue(schedule, now, BACKLOG_MS)),
      ].map(({ schedule }) => schedule)
      findings.push(...(await this.#findPastDue(tx, overdue, { locked, now })))
      await reportRepairs(tx, { findings, now, databaseNow: clock.databaseNow() })
      return { findings, heldIds, left }
    })
  }

  async #findPastDue(
    tx: Tx,
    overdue: readonly AuditedSchedule[],
    { locked, now }: { readonly locked: ReadonlySet<string>; readonly now: number },
  ): Promise<NewFinding[]> {
    if (overdue.length === 0) return []
    const lanes = overdue.map(({ lane }) => lane)
    const judge = await OverdueJudge.read(tx, { lanes, now, databaseNow: this.#deps.clock.databaseNow() })
    return overdue.flatMap(({ id, lane, dueAt, nextSlotAt }) => {
      if (dueAt === null || !judge.isPassedOver({ lane, dueAt }, 'slotAt')) return []
      const remedy = judge.remedy(lane, !locked.has(id))
      const detail = `due since ${formatInstant(dueAt)}, and no worker has begun it: ${remedy}`
      return [{ kind: 'schedule_past_due', scheduleId: id, scheduledFor: nextSlotAt, detail, isRepaired: false }]
    })
  }
}

/** Backlogs before lines: see `listBacklogRanges`. */
async function readSchedules(
  tx: Tx,
  ids: readonly string[],
  { specs: { window }, now }: SlotAuditTask,
): Promise<ReadSchedules> {
  const [from, to] = [new Date(window.from), new Date(window.to)]
  const schedules = await listAuditedSchedules(tx, { ids, from: new Date(window.from - CHANGE_RACE_MS), to })
  const scheduleIds = schedules.map(({ id }) => id)
  const backlogs = await listBacklogRanges(tx, { scheduleIds, madeAfter: new Date(now - BACKLOG_EXCUSED_MS) })
  return { schedules, backlogs, lines: await listAuditedLines(tx, { scheduleIds, from, to, limit: SLOTS_MAX }) }
}

/** Undefined for a schedule whose spec can no longer be read, or searched. It is passed over alone: begin pauses it and says why. */
function judge(schedule: AuditedSchedule, read: ReadSchedules, specs: SpecCache): SlotVerdict | undefined {
  const { id } = schedule
  try {
    const backlogs = read.backlogs.get(id) ?? []
    const lines = read.lines.get(id) ?? NO_LINES
    return compareSlots(schedule, lines, { window: specs.window, specs, linesMax: SLOTS_MAX, backlogs })
  } catch {
    return undefined
  }
}

function isSuspect(verdict: SlotVerdict | undefined): boolean {
  return verdict !== undefined && (verdict.lost.length > 0 || verdict.unknown.length > 0)
}

function isOverdue({ dueAt }: AuditedSchedule, now: number, ms: number): boolean {
  return dueAt !== null && now - dueAt > ms
}

/** Lost slots of a schedule that another transaction holds. A fresh one may still be explained by that transaction. */
function heldFindings({ id }: AuditedSchedule, verdict: SlotVerdict | undefined, now: number): NewFinding[] {
  return (verdict?.lost ?? [])
    .filter(({ slot }) => now - slot > BACKLOG_MS)
    .slice(0, HELD_SLOTS_TOLD)
    .map(({ slot, revision }) => {
      const detail =
        `the slot came due under revision ${revision} and left no line, and another transaction holds the row of its schedule: ` +
        'see which one (pg_locks), and end it; an audit then writes the line'
      return { kind: 'slot_lost', scheduleId: id, scheduledFor: slot, detail, isRepaired: false }
    })
}

function lostFinding(
  scheduleId: string,
  scheduledFor: number,
  revision: number,
  state: RunState | undefined,
): NewFinding {
  const what = `the slot came due under revision ${revision} and left no line`
  const remedy =
    state === undefined
      ? 'its line is there by now; nothing is left to do'
      : state === 'skipped'
        ? 'it has the line skipped: missed now, and was not run; run the schedule by hand if the work is still wanted'
        : `its attempts say that it ran, so its line was restored as ${state}; nothing is left to do`
  const isRepaired = state !== undefined
  return { kind: 'slot_lost', scheduleId, scheduledFor, detail: `${what}: ${remedy}`, isRepaired }
}

function unknownFinding({ id }: AuditedSchedule, scheduledFor: number): NewFinding {
  const detail =
    'the ledger has a line at an instant that the schedule did not await: ' +
    'see who wrote to the database by hand; if nobody did, please report it'
  return { kind: 'slot_unknown', scheduleId: id, scheduledFor, detail, isRepaired: false }
}
