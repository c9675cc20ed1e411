import type { Clock } from '../clock.ts'
import { listAuditedLines, type AuditedLines } from '../store/audited-lines.ts'
import { listAuditedSchedules, type AuditedSchedule } from '../store/audited-schedules.ts'
import { insertRuns } from '../store/begin.ts'
import { transact, type Db } from '../store/database.ts'
import { newRun } from '../store/new-run.ts'
import { lockSchedules } from '../store/schedule-lock.ts'
import { readSnapshot } from '../store/snapshot.ts'
import { CHANGE_RACE_MS, compareSlots, type LostSlot } from './expected-slots.ts'
import type { FindingList } from './finding-list.ts'
import { SpecBook, type AuditWindow } from './spec-book.ts'

export interface SlotAuditOptions {
  readonly window: AuditWindow
  /** How late an active schedule may be before that is a finding. */
  readonly pastDueMs: number
}

export interface SlotAuditCounts {
  readonly schedules: number
  readonly slots: number
  readonly unreadable: number
  readonly truncated: number
}

// A page of schedules that ring every minute holds 300,000 lines, as numbers.
const SCHEDULES_PER_PAGE = 200
/** Of one schedule in one window: every nine seconds for a day. */
const SLOTS_MAX = 10_000
const LINES_PER_REPAIR = 1000
/** For how long slots are computed before the rest of the process gets its turn. */
const TURN_MS = 10
const BEFORE_ALL_IDS = '00000000-0000-0000-0000-000000000000'
const NO_LINES: AuditedLines = { scheduled: [], manual: [] }

/** Holds the ledger against the specs, schedule by schedule, a page at a time. Gives lost slots their line. */
export class SlotAudit {
  readonly #db: Db
  readonly #clock: Clock
  readonly #options: SlotAuditOptions
  readonly #found: FindingList
  readonly #book: SpecBook
  readonly #counts = { schedules: 0, slots: 0, unreadable: 0, truncated: 0 }
  #turnEndsMs = 0

  constructor(
    { db, clock }: { readonly db: Db; readonly clock: Clock },
    options: SlotAuditOptions,
    found: FindingList,
  ) {
    this.#db = db
    this.#clock = clock
    this.#options = options
    this.#found = found
    this.#book = new SpecBook(options.window, SLOTS_MAX)
  }

  async run(): Promise<SlotAuditCounts> {
    let after = BEFORE_ALL_IDS
    for (;;) {
      const { schedules, lines } = await this.#readPage(after)
      const last = schedules.at(-1)
      if (last === undefined) return this.#counts
      const lost: { schedule: AuditedSchedule; slot: LostSlot }[] = []
      for (const schedule of schedules) {
        await this.#takeTurns()
        for (const slot of this.#compare(schedule, lines.get(schedule.id) ?? NO_LINES)) lost.push({ schedule, slot })
      }
      await this.#repair(lost)
      if (schedules.length < SCHEDULES_PER_PAGE) return this.#counts
      after = last.id
    }
  }

  /**
   * As of one instant: a schedule that is resumed and begun in between would have a line that nothing explains. Nothing is
   * computed in here, for a transaction left idle is cut.
   */
  #readPage(after: string): Promise<{ schedules: AuditedSchedule[]; lines: Map<string, AuditedLines> }> {
    const { from, to } = this.#options.window
    return readSnapshot(this.#db, async (tx) => {
      const schedules = await listAuditedSchedules(tx, {
        after,
        limit: SCHEDULES_PER_PAGE,
        from: new Date(from - CHANGE_RACE_MS),
        to: new Date(to),
      })
      const scheduleIds = schedules.map(({ id }) => id)
      const window = { from: new Date(from), to: new Date(to) }
      return { schedules, lines: await listAuditedLines(tx, { scheduleIds, ...window, limit: SLOTS_MAX }) }
    })
  }

  #compare(schedule: AuditedSchedule, lines: AuditedLines): readonly LostSlot[] {
    this.#counts.schedules += 1
    this.#noteIfPastDue(schedule)
    const { window } = this.#options
    const verdict = attempted(() => compareSlots(schedule, lines, { window, book: this.#book, linesMax: SLOTS_MAX }))
    if (verdict === undefined) {
      this.#counts.unreadable += 1
      return []
    }
    this.#counts.slots += verdict.expected
    if (verdict.until < window.to) this.#counts.truncated += 1
    for (const slot of verdict.unknown) {
      const detail = 'the ledger has a line that no spec explains'
      this.#found.add({ kind: 'slot_unknown', scheduleId: schedule.id, scheduledFor: slot, detail, isRepaired: false })
    }
    return verdict.lost
  }

  #noteIfPastDue({ id, nextSlotAt, dueAt }: AuditedSchedule): void {
    const { window, pastDueMs } = this.#options
    if (dueAt === null || dueAt >= window.to - pastDueMs) return
    const detail = `nobody has begun it since it was due at ${new Date(dueAt).toISOString()}`
    this.#found.add({ kind: 'schedule_past_due', scheduleId: id, scheduledFor: nextSlotAt, detail, isRepaired: false })
  }

  /** I6: what is lost gets the line it should have had. It is not run: nobody knows whether it was (I2, I11). */
  async #repair(lost: readonly { schedule: AuditedSchedule; slot: LostSlot }[]): Promise<void> {
    for (let start = 0; start < lost.length; start += LINES_PER_REPAIR) {
      const runs = lost
        .slice(start, start + LINES_PER_REPAIR)
        .map(({ schedule, slot: { slot, revision } }) =>
          newRun({ ...schedule, revision }, { slot, state: 'skipped', reason: 'missed' }, this.#options.window.to),
        )
      const written = await transact(this.#db, this.#clock, async (tx) => {
        await lockSchedules(tx, { scheduleIds: runs.map(({ scheduleId }) => scheduleId) })
        return insertRuns(tx, { runs, workerId: null, onConflict: 'keep', now: this.#clock.databaseNow() })
      })
      for (const { id, scheduleId, scheduledFor, revision } of runs) {
        const detail = `the slot came due under revision ${revision} and left no line`
        this.#found.add({ kind: 'slot_lost', scheduleId, scheduledFor, detail, isRepaired: written.has(id) })
      }
    }
  }

  async #takeTurns(): Promise<void> {
    if (this.#clock.monotonicMs() < this.#turnEndsMs) return
    await this.#clock.sleep(0)
    this.#turnEndsMs = this.#clock.monotonicMs() + TURN_MS
  }
}

/** A schedule whose spec can no longer be read, or searched, is passed over alone: begin pauses it and says why. */
function attempted<Result>(work: () => Result): Result | undefined {
  try {
    return work()
  } catch {
    return undefined
  }
}
