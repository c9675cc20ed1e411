import { isRunChange } from '@carillon/api'

import type { Db } from '../db/database.ts'
import { readTransactionTime } from '../db/now.ts'
import type { Clock } from '../kernel/clock.ts'
import { DueList, UnlistedSpan, type DueEntry } from './due-list.ts'
import { CHANGE_RACE_MS } from './expected-slots.ts'
import type { SlotAudit, SlotAuditResult } from './slot-audit.ts'
import { findLatestChange, listChangesAfter, listComingDue, type AgendaPosition } from './store/coming-due.ts'
import type { AuditedSchedule } from './store/slots.ts'

export interface RecentAuditDeps {
  readonly db: Db
  readonly clock: Clock
  readonly slots: SlotAudit
}

/** How far ahead the agenda is read. If no worker reads it for longer than this, slots come due that are not listed: see `UnlistedSpan`. */
const AHEAD_MS = 120_000
/** How often the agenda is read. */
const LOOK_EVERY_MS = 15_000
/**
 * How long after a slot came due it is compared. Begin may be late, and a schedule with a slot every minute is then compared once for two
 * slots.
 */
const SETTLED_AFTER_MS = 120_000
/** How many schedules, or changes, one statement reads. */
const ROWS_PER_LOOK = 5000
/** The most schedules on the list, which take about 25 MB of memory. Slots that do not fit are left to the full audit. */
const SCHEDULES_MAX = 200_000
const SCHEDULES_PER_PAGE = 200
/**
 * How far back a comparison reaches; older slots are left to the full audit. A day, an hour for the longest spread (a slot may come due
 * that much after its instant), and an hour for an audit that starts late.
 */
export const RECENT_WINDOW_MS = 26 * 3_600_000

/** One pass over the agenda, read in portions. */
interface AgendaPass {
  /** The previous pass has read everything that is due up to this instant; null: there was no previous pass. */
  readonly after: number | null
  /** This pass reads everything that is due up to this instant. */
  readonly until: number
  /** The last schedule of the previous portion; null before the first portion and after the last. */
  readonly resume: AgendaPosition | null
}

/** How far `schedule_changes` has been read. */
export interface ReadChanges {
  readonly changeId: string
  /** True if there are more changes than one statement reads. */
  readonly hasMore: boolean
}

/**
 * Compares the slots that came due recently with the specs. It keeps a list of schedules in memory: those that the agenda shows as due
 * soon, and those that `schedule_changes` shows as changed. It compares the slot of each listed schedule a while after the slot. So its
 * cost depends on the number of slots, not on the number of schedules.
 *
 * The list misses slots that come due before the agenda is read, before this worker has the turn, or while the list is full.
 * `reachedAt` stays at the first instant whose slots may be missing, until a full audit has compared them.
 */
export class RecentAudit {
  readonly #deps: RecentAuditDeps
  readonly #list: DueList
  readonly #unlisted = new UnlistedSpan()
  /** Entries that were compared and whose slice is not stored yet. */
  #taken: DueEntry[] = []
  #pass: AgendaPass | undefined
  #readAt = -Infinity
  /** The schedules of all changes up to this instant are listed; Infinity: those of every change. */
  #changesUntil = Infinity

  /** @param max how many schedules are kept in memory */
  constructor(deps: RecentAuditDeps, max = SCHEDULES_MAX) {
    this.#deps = deps
    this.#list = new DueList(max)
  }

  /** Clears the memory: another worker has the turn. */
  clear(): void {
    this.#list.clear()
    this.#unlisted.clear()
    this.#taken = []
    this.#pass = undefined
    this.#readAt = -Infinity
    this.#changesUntil = Infinity
  }

  /**
   * Notes that the slice is stored.
   * @param coveredUntil the start of the full audit that this slice finished; null: it finished none
   */
  commit(coveredUntil: number | null): void {
    this.#taken = []
    if (coveredUntil !== null) this.#unlisted.cover(coveredUntil)
  }

  /** Lists again what was compared: the slice was not stored. */
  rollBack(): void {
    for (const entry of this.#taken.splice(0)) this.#add(entry, entry.dueAt, entry.dueAt)
  }

  /**
   * The instant up to which all slots that came due have been compared; null if it is not known.
   * @param coveredUntil the start of the full audit that this slice finished; null: it finished none
   */
  reachedAt(now: number, coveredUntil: number | null): number | null {
    const unlistedSince = this.#unlisted.since(coveredUntil ?? -Infinity)
    const reachedAt = Math.min(now, this.#list.earliestDueAt, this.#changesUntil, unlistedSince)
    return reachedAt === -Infinity ? null : reachedAt
  }

  /**
   * Lists one portion of the schedules that come due soon, if the next pass is due.
   * @param reachedBefore the instant up to which slots had been compared when this worker claimed the turn; null: not known
   * @returns true if there is more to read
   */
  async listComingDue(now: number, reachedBefore: number | null): Promise<boolean> {
    const { db, clock } = this.#deps
    const isUnderWay = this.#pass?.resume != null
    if (!isUnderWay && now - this.#readAt < LOOK_EVERY_MS) return false
    const pass = isUnderWay && this.#pass !== undefined ? this.#pass : this.#nextPass(now)
    const { after, until, resume } = pass
    const due = await listComingDue(db, {
      after: after === null ? null : new Date(after),
      until: new Date(until),
      resume,
      limit: ROWS_PER_LOOK,
    })
    // A slot that came due before its schedule was read may have begun by then. The agenda then names the schedule's next slot instead.
    const listedUntil = after ?? reachedBefore ?? -Infinity
    this.#unlisted.add(listedUntil, Math.min(await readTransactionTime(db, clock.databaseNow()), until))
    for (const { id, dueAt, nextSlotAt } of due) {
      const entry = { id, from: nextSlotAt, dueAt: Math.max(dueAt, listedUntil) }
      this.#add(entry, Math.max(dueAt, now) + SETTLED_AFTER_MS, now)
    }
    const last = due.length < ROWS_PER_LOOK ? null : (due.at(-1) ?? null)
    this.#pass = { after, until, resume: last }
    this.#readAt = now
    return last !== null
  }

  /**
   * Lists schedules that changed. A change of one run changes no slot, so it lists none.
   * @param after the id of the last change that was listed; null: none was
   */
  async listChanges(after: string | null, now: number): Promise<ReadChanges> {
    const { db } = this.#deps
    if (after === null) return { changeId: await findLatestChange(db), hasMore: false }
    let changeId = after
    const changes = await listChangesAfter(db, { after, limit: ROWS_PER_LOOK })
    // A change with a lower id may not be committed yet, because ids are drawn before the commit. So recent changes are left for later.
    const settled = changes.findIndex(({ changedAt }) => changedAt > now - CHANGE_RACE_MS)
    for (const { id, scheduleId, change, changedAt } of settled === -1 ? changes : changes.slice(0, settled)) {
      const from = changedAt - CHANGE_RACE_MS
      if (!isRunChange(change)) this.#add({ id: scheduleId, from, dueAt: from }, from + SETTLED_AFTER_MS, now)
      changeId = id
    }
    const hasMore = settled === -1 && changes.length === ROWS_PER_LOOK
    this.#changesUntil = hasMore ? (changes.at(-1)?.changedAt ?? now) - CHANGE_RACE_MS : Infinity
    return { changeId, hasMore }
  }

  /** Compares a page of schedules whose time of comparison has come; undefined if there are none. */
  async compare(now: number): Promise<SlotAuditResult | undefined> {
    const entries = this.#list.take(now, SCHEDULES_PER_PAGE)
    if (entries.length === 0) return undefined
    this.#taken.push(...entries)
    const earliest = Math.min(...entries.map(({ from }) => from))
    const window = { from: Math.max(earliest, now - RECENT_WINDOW_MS), to: now }
    const result = await this.#deps.slots.run({ ids: entries.map(({ id }) => id), window, now })
    const busy = new Set(result.busyIds)
    for (const entry of entries) if (busy.has(entry.id)) this.#add(entry, now + SETTLED_AFTER_MS, now)
    for (const schedule of result.schedules) this.#listAgain(schedule, now)
    return result
  }

  #nextPass(now: number): AgendaPass {
    return { after: this.#pass?.until ?? null, until: now + AHEAD_MS, resume: null }
  }

  /** Lists a schedule again if its next slot comes due soon: that slot may lie in a part of the agenda that was read already. */
  #listAgain({ id, nextSlotAt, dueAt }: AuditedSchedule, now: number): void {
    if (nextSlotAt === null || dueAt === null || dueAt > now + AHEAD_MS) return
    const entry = { id, from: now - (dueAt - nextSlotAt), dueAt: Math.max(dueAt, now) }
    this.#add(entry, Math.max(dueAt, now) + SETTLED_AFTER_MS, now)
  }

  #add(entry: DueEntry, compareAt: number, now: number): void {
    if (this.#list.add(entry, compareAt)) return
    this.#unlisted.add(Math.min(entry.dueAt, now), Math.max(entry.dueAt, now))
  }
}
