import type { Clock } from '../clock.ts'
import type { AuditedSchedule } from '../store/audited-schedules.ts'
import { findLatestChange, listChangesAfter, listComingDue, type AgendaPosition } from '../store/coming-due.ts'
import type { Db } from '../store/database.ts'
import { readNow } from '../store/now.ts'
import { DueList, type DueEntry } from './due-list.ts'
import { CHANGE_RACE_MS } from './expected-slots.ts'
import { MissedSpan } from './missed-span.ts'
import { SLOTS_MAX, type SlotAudit, type SlotAuditResult } from './slot-audit.ts'
import { SpecCache } from './spec-cache.ts'

export interface RecentAuditDeps {
  readonly db: Db
  readonly clock: Clock
  readonly slots: SlotAudit
}

/** How far ahead the agenda is read. An auditor that does not look for longer misses slots, and says so: see `MissedSpan`. */
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

/** Which changes were noted. */
export interface NotedChanges {
  readonly changeId: string
  /** There are more than one statement reads. */
  readonly hasMore: boolean
}

/**
 * Compares the slots that came due lately with the specs. It reads from the agenda which schedules are about to come due, and from
 * `schedule_changes` which were changed, keeps them on a list in memory, and compares each a while after its slot. So it costs as
 * much as there are slots, however many schedules there are.
 *
 * It cannot list slots that came due before it read the agenda: while nobody looked, before this worker had the turn, or beyond the
 * list's room. It remembers since when, and `reachedAt` does not pass that instant until a full audit has compared them.
 */
export class RecentAudit {
  readonly #deps: RecentAuditDeps
  readonly #list: DueList
  readonly #missed = new MissedSpan()
  /** Entries that were compared since the last call of `keep`. */
  #taken: DueEntry[] = []
  #look: AgendaLook | undefined
  #lookedAt = -Infinity
  /** Up to when changes were noted; Infinity: all of them. */
  #changesUntil = Infinity

  /** @param max how many schedules it keeps in memory */
  constructor(deps: RecentAuditDeps, max = SCHEDULES_MAX) {
    this.#deps = deps
    this.#list = new DueList(max)
  }

  /** Another worker audits: what this one remembers is of no use any more. */
  forget(): void {
    this.#list.clear()
    this.#missed.clear()
    this.#taken = []
    this.#look = undefined
    this.#lookedAt = -Infinity
    this.#changesUntil = Infinity
  }

  /** What was compared is written down, and a full audit that began at `coveredUntil` is over; null: none is. */
  keep(coveredUntil: number | null): void {
    this.#taken = []
    if (coveredUntil !== null) this.#missed.cover(coveredUntil)
  }

  /** What was compared could not be written down: it is compared again. */
  putBack(): void {
    for (const entry of this.#taken.splice(0)) this.#add(entry, entry.dueAt, entry.dueAt)
  }

  /**
   * Slots that came due before this instant have been compared; null if it is not known which were.
   * @param coveredUntil when the full audit began that is over by now; null: none is
   */
  reachedAt(now: number, coveredUntil: number | null): number | null {
    const missedSince = this.#missed.since(coveredUntil ?? -Infinity)
    const reachedAt = Math.min(now, this.#list.earliestDueAt, this.#changesUntil, missedSince)
    return reachedAt === -Infinity ? null : reachedAt
  }

  /**
   * Reads one portion of the agenda, if it is time to.
   * @param reachedBefore up to when slots had been compared when this worker got the turn; null: not known
   * @returns whether there is more to read
   */
  async look(now: number, reachedBefore: number | null): Promise<boolean> {
    const { db, clock } = this.#deps
    const isUnderWay = this.#look?.resume != null
    if (!isUnderWay && now - this.#lookedAt < LOOK_EVERY_MS) return false
    const look = isUnderWay && this.#look !== undefined ? this.#look : this.#nextLook(now)
    const { after, until, resume } = look
    const due = await listComingDue(db, {
      after: after === null ? null : new Date(after),
      until: new Date(until),
      resume,
      limit: ROWS_PER_LOOK,
    })
    // What came due before it was read may have begun, and is then no longer where the agenda was read.
    const listedUntil = after ?? reachedBefore ?? -Infinity
    this.#missed.add(listedUntil, Math.min(await readNow(db, clock.databaseNow()), until))
    for (const { id, dueAt, nextSlotAt } of due) {
      const entry = { id, from: nextSlotAt, dueAt: Math.max(dueAt, listedUntil) }
      this.#add(entry, Math.max(dueAt, now) + SETTLED_AFTER_MS, now)
    }
    const last = due.length < ROWS_PER_LOOK ? null : (due.at(-1) ?? null)
    this.#look = { after, until, resume: last }
    this.#lookedAt = now
    return last !== null
  }

  /**
   * Lists schedules that were changed since a change.
   * @param after null: none was noted yet
   */
  async noteChanges(after: string | null, now: number): Promise<NotedChanges> {
    const { db } = this.#deps
    if (after === null) return { changeId: await findLatestChange(db), hasMore: false }
    let changeId = after
    const changes = await listChangesAfter(db, { after, limit: ROWS_PER_LOOK })
    // Ids are drawn before their transactions commit: one with a lower id may still be under way.
    const settled = changes.findIndex(({ changedAt }) => changedAt > now - CHANGE_RACE_MS)
    for (const { id, scheduleId, changedAt } of settled === -1 ? changes : changes.slice(0, settled)) {
      const from = changedAt - CHANGE_RACE_MS
      this.#add({ id: scheduleId, from, dueAt: from }, from + SETTLED_AFTER_MS, now)
      changeId = id
    }
    const hasMore = settled === -1 && changes.length === ROWS_PER_LOOK
    this.#changesUntil = hasMore ? (changes.at(-1)?.changedAt ?? now) - CHANGE_RACE_MS : Infinity
    return { changeId, hasMore }
  }

  /** Compares a page of schedules whose slots have passed; undefined if there are none. */
  async compare(now: number): Promise<SlotAuditResult | undefined> {
    const entries = this.#list.take(now, SCHEDULES_PER_PAGE)
    if (entries.length === 0) return undefined
    this.#taken.push(...entries)
    const earliest = Math.min(...entries.map(({ from }) => from))
    const specs = new SpecCache({ from: Math.max(earliest, now - WINDOW_MAX_MS), to: now }, SLOTS_MAX)
    const result = await this.#deps.slots.run({ ids: entries.map(({ id }) => id), specs, now })
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
    const entry = { id, from: now - (dueAt - nextSlotAt), dueAt: Math.max(dueAt, now) }
    this.#add(entry, Math.max(dueAt, now) + SETTLED_AFTER_MS, now)
  }

  #add(entry: DueEntry, compareAt: number, now: number): void {
    if (this.#list.add(entry, compareAt)) return
    this.#missed.add(Math.min(entry.dueAt, now), Math.max(entry.dueAt, now))
  }
}
