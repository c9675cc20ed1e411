import type { Clock } from '../clock.ts'
import type { AuditedSchedule } from '../store/audited-schedules.ts'
import { findLatestChange, listChangesAfter, listComingDue, type AgendaPosition } from '../store/coming-due.ts'
import type { Db } from '../store/database.ts'
import { DueList, type DueEntry } from './due-list.ts'
import { CHANGE_RACE_MS } from './expected-slots.ts'
import { SLOTS_MAX, type SlotAudit, type SlotAuditResult } from './slot-audit.ts'
import { SpecCache } from './spec-cache.ts'

export interface RecentAuditDeps {
  readonly db: Db
  readonly clock: Clock
  readonly slots: SlotAudit
}

/** How far ahead the agenda is read. Whoever does not look for longer than this misses schedules that come due meanwhile. */
const AHEAD_MS = 120_000
/** How often it is read. */
const LOOK_EVERY_MS = 15_000
/** How long after a slot it is compared: begin may be late, and a schedule that rings every minute is compared once for two slots. */
const SETTLED_AFTER_MS = 120_000
/** How many entries of the agenda, or changes, one statement reads. */
const ROWS_PER_LOOK = 5000
/** Some 25 MB. */
const SCHEDULES_MAX = 200_000
const SCHEDULES_PER_PAGE = 200
/** No slot is compared that is older than this: the full audit has come by. */
const WINDOW_MAX_MS = 26 * 3_600_000

/** Where a look at the agenda goes on. */
interface AgendaLook {
  /** What came due up to here was read before; null: from the earliest on. */
  readonly after: number | null
  readonly until: number
  /** The last schedule of the portion before; null if this portion is the first. */
  readonly resume: AgendaPosition | null
}

/**
 * Compares the slots that came due lately with the specs. It reads from the agenda which schedules are about to come due, and from
 * `schedule_changes` which were changed, keeps them on a list in memory, and compares each a while after its slot. So it costs as
 * much as there are slots, however many schedules there are.
 *
 * What it misses the full audit finds: schedules that came due while nobody looked, or before this worker had the turn, or that the
 * list had no room for.
 */
export class RecentAudit {
  readonly #deps: RecentAuditDeps
  readonly #list: DueList
  #look: AgendaLook | undefined
  #lookedAt = -Infinity
  /** When the list was full: since then slots may have come due that only a full audit compares. */
  #fullSince = Infinity

  /** @param max how many schedules it keeps in memory */
  constructor(deps: RecentAuditDeps, max = SCHEDULES_MAX) {
    this.#deps = deps
    this.#list = new DueList(max)
  }

  /** Another worker audits: what this one remembers is of no use any more. */
  forget(): void {
    this.#list.clear()
    this.#look = undefined
    this.#lookedAt = -Infinity
    this.#fullSince = Infinity
  }

  /** Slots that came due up to this instant have been compared. */
  reachedAt(now: number): number {
    return Math.min(now, this.#list.earliest - SETTLED_AFTER_MS, this.#fullSince)
  }

  /** A full audit that began then has looked at everything: also at what the list had no room for before. */
  coveredBy(startedAt: number): void {
    if (this.#fullSince <= startedAt) this.#fullSince = Infinity
  }

  /**
   * Reads one portion of the agenda, if it is time to.
   * @returns whether there is more to read
   */
  async look(now: number): Promise<boolean> {
    const isUnderWay = this.#look?.resume != null
    if (!isUnderWay && now - this.#lookedAt < LOOK_EVERY_MS) return false
    const look = isUnderWay && this.#look !== undefined ? this.#look : this.#nextLook(now)
    const { after, until, resume } = look
    const due = await listComingDue(this.#deps.db, {
      after: after === null ? null : new Date(after),
      until: new Date(until),
      resume,
      limit: ROWS_PER_LOOK,
    })
    for (const { id, dueAt, nextSlotAt } of due) {
      this.#add({ id, from: nextSlotAt }, Math.max(dueAt, now) + SETTLED_AFTER_MS, now)
    }
    const last = due.length < ROWS_PER_LOOK ? null : (due.at(-1) ?? null)
    this.#look = { after, until, resume: last }
    this.#lookedAt = now
    return last !== null
  }

  /**
   * Lists schedules that were changed since a change.
   * @param after null: none was noted yet
   * @returns up to which change
   */
  async noteChanges(after: string | null, now: number): Promise<string> {
    const { db } = this.#deps
    if (after === null) return findLatestChange(db)
    let noted = after
    for (const { id, scheduleId, changedAt } of await listChangesAfter(db, { after, limit: ROWS_PER_LOOK })) {
      // Ids are drawn before their transactions commit: one with a lower id may still be under way.
      if (changedAt > now - CHANGE_RACE_MS) break
      this.#add({ id: scheduleId, from: changedAt - CHANGE_RACE_MS }, now, now)
      noted = id
    }
    return noted
  }

  /** Compares a page of schedules whose slots have passed; undefined if there are none. */
  async compare(now: number): Promise<SlotAuditResult | undefined> {
    const entries = this.#list.take(now, SCHEDULES_PER_PAGE)
    if (entries.length === 0) return undefined
    const earliest = Math.min(...entries.map(({ from }) => from))
    const specs = new SpecCache({ from: Math.max(earliest, now - WINDOW_MAX_MS), to: now }, SLOTS_MAX)
    const result = await this.#deps.slots.run({ page: { ids: entries.map(({ id }) => id) }, specs, now })
    const held = new Set(result.heldIds)
    for (const entry of entries) if (held.has(entry.id)) this.#add(entry, now + SETTLED_AFTER_MS, now)
    for (const schedule of result.schedules) this.#listAgain(schedule, now)
    return result
  }

  #nextLook(now: number): AgendaLook {
    return { after: this.#look?.until ?? null, until: now + AHEAD_MS, resume: null }
  }

  /** One that comes due again before the agenda is read anew has moved to where it was read already. */
  #listAgain({ id, nextSlotAt, dueAt }: AuditedSchedule, now: number): void {
    if (nextSlotAt === null || dueAt === null || dueAt > now + AHEAD_MS) return
    this.#add({ id, from: now - (dueAt - nextSlotAt) }, Math.max(dueAt, now) + SETTLED_AFTER_MS, now)
  }

  #add(entry: DueEntry, compareAt: number, now: number): void {
    if (!this.#list.add(entry, compareAt)) this.#fullSince = Math.min(this.#fullSince, now)
  }
}
