import { z } from 'zod'

import { identifierAt } from '../identifier.ts'
import { AUDIT_TURN, insertAudit, insertFindings, type FindingKind } from '../store/audits.ts'
import { transact, type Tx } from '../store/database.ts'
import { readNow } from '../store/now.ts'
import { readCursor, type ClaimedTurn } from '../store/service-turns.ts'
import { FindingList } from './finding-list.ts'
import { FullAudit, newFullAudit, type FullAuditState } from './full-audit.ts'
import { LedgerAudit } from './ledger-audit.ts'
import { RecentAudit } from './recent-audit.ts'
import { SlotAudit, type SlotAuditCounts, type SlotAuditResult } from './slot-audit.ts'
import { TimeSlices } from './time-slices.ts'
import { TurnService, type Slice, type TurnServiceDeps } from './turn-service.ts'

export type AuditorDeps = TurnServiceDeps

export interface AuditorOptions {
  /** How far back slots are audited; never further than the ledger remembers. @default 26 hours */
  readonly windowMs?: number
  /** For how long the ledger remembers. @default 90 days */
  readonly retentionMs?: number
}

/** What a slice, or a whole audit, came to. */
export interface AuditCounts extends SlotAuditCounts {
  readonly findings: Readonly<Record<FindingKind, number>>
  readonly repaired: number
  /** Whether everything has been looked at. */
  readonly isWhole: boolean
}

const HOUR_MS = 3_600_000
const DAY_MS = 24 * HOUR_MS
/**
 * A day, an hour for the longest spread, by which a slot of yesterday's window may have come due after its end, and an
 * hour for an audit that starts late.
 */
const WINDOW_DEFAULT_MS = 26 * HOUR_MS
const RETENTION_DEFAULT_MS = 90 * DAY_MS
const LOOK_MS = 2000
const PAUSE_AFTER_FAILURE_MS = 1000
/** Of one core. After each slice it rests for as much longer than the slice took. */
const SHARE = 0.01
/** How long a slice takes at most, but for its last page; longer if somebody waits for the answer. */
const SLICE_MS = 50
const SLICE_ASKED_MS = 2000
/** Of a slice, for what came due lately. The rest is for the full audit, which must not starve. */
const RECENT_PART = 0.75
/** Between slices while there is more to do, and while there is not. */
const REST_MIN_MS = 1000
const REST_IDLE_MS = 15_000
/** However long a slice took: what is about to come due is read two minutes ahead. */
const REST_MAX_MS = 60_000
/** From the end of a full audit to the next. With the time that it takes, damage in a small database is found within ten minutes. */
const FULL_EVERY_MS = 120_000
/** The counts are complete; more than this nobody reads. */
const FINDINGS_KEPT = 10_000

const COUNTS = z.object({ schedules: z.int(), slots: z.int(), unreadable: z.int(), truncated: z.int() })

const CURSOR = z.object({
  /** What ended up to this instant was written by an older version. */
  legacyUntil: z.number().nullable().default(null),
  /** The last change of a schedule that was noted. */
  changeId: z.string().nullable().default(null),
  /** When the next full audit starts, if none is under way. */
  nextFullAt: z.number().default(0),
  full: z
    .object({
      startedAt: z.number(),
      requestedAt: z.number().nullable(),
      after: z.string(),
      counts: COUNTS,
      findings: z.int(),
      repaired: z.int(),
    })
    .nullable()
    .default(null),
})

type Cursor = z.output<typeof CURSOR>

/**
 * Proves the promise of the ledger from the outside; in a sound system it finds nothing. It goes on all the time, on one worker, a
 * slice at a time, and takes one hundredth of a core. Each slice compares what came due lately with the specs (`RecentAudit`), and
 * goes on with the audit of everything there is (`FullAudit`). An audit that somebody asks for is a full one that does not rest.
 *
 * What is found is written down and told at once. A slice that is repeated, because its worker died before it stored how far it got,
 * finds again what was not repaired, and what was repaired is in the ledger.
 */
export class Auditor extends TurnService<AuditCounts> {
  override readonly name = 'auditor'
  readonly #deps: AuditorDeps
  readonly #options: Required<AuditorOptions>
  readonly #recent: RecentAudit
  readonly #full: FullAudit
  /** What was told since the last full audit began, but for what was repaired: both audits may find it. */
  readonly #told = new Set<string>()

  constructor(deps: AuditorDeps, options: AuditorOptions = {}) {
    super(deps, { turn: AUDIT_TURN, lookMs: LOOK_MS, pauseAfterFailureMs: PAUSE_AFTER_FAILURE_MS })
    this.#deps = deps
    this.#options = {
      windowMs: options.windowMs ?? WINDOW_DEFAULT_MS,
      retentionMs: options.retentionMs ?? RETENTION_DEFAULT_MS,
    }
    const slots = new SlotAudit({ ...deps, slices: new TimeSlices(deps.clock) })
    this.#recent = new RecentAudit({ ...deps, slots })
    this.#full = new FullAudit({ ...deps, slots, ledger: new LedgerAudit(deps) }, this.#options)
  }

  /** A full audit at once, whoever has the turn; for tests and tools. */
  async audit(): Promise<AuditCounts> {
    const { db, clock } = this.#deps
    const now = await readNow(db, clock.databaseNow())
    const { legacyUntil } = cursorOf(await readCursor(db, { name: AUDIT_TURN }))
    const part = this.#newPart(now)
    const full = await this.#auditFull(this.#newFull(now, now), part, { legacyUntil, isOver: () => false })
    await transact(db, clock, (tx) => this.#record(tx, part, full))
    this.#tell(part, full)
    return countsOf(part, true)
  }

  protected override forget(): void {
    this.#recent.forget()
  }

  protected override async slice({ now, cursor, requestedAt }: ClaimedTurn): Promise<Slice<AuditCounts>> {
    const { clock } = this.#deps
    const startedAtMs = clock.monotonicMs()
    const { legacyUntil, nextFullAt, ...known } = cursorOf(cursor)
    const part = this.#newPart(now)
    const full = this.#fullOf({ ...known, nextFullAt }, now, requestedAt)
    const sliceMs = full?.requestedAt == null ? SLICE_MS : SLICE_ASKED_MS
    const isOver = (share: number): boolean => clock.monotonicMs() - startedAtMs >= sliceMs * share
    const recent = await this.#auditRecent(known.changeId, part, () => isOver(RECENT_PART))
    const went = full && (await this.#auditFull(full, part, { legacyUntil, isOver: () => isOver(1) }))
    const whole = went?.isWhole === true ? went : null
    if (whole !== null) this.#recent.coveredBy(whole.startedAt)
    const isAnswered = whole !== null && requestedAt !== null && requestedAt <= whole.startedAt
    const isAsked = requestedAt !== null && !isAnswered
    const hasMore = recent.hasMore || (went !== null && whole === null)
    return {
      counts: countsOf(part, whole !== null),
      cursor: {
        legacyUntil,
        changeId: recent.changeId,
        nextFullAt: whole === null ? nextFullAt : now + FULL_EVERY_MS,
        full: whole === null ? went : null,
      } satisfies Cursor,
      restMs: isAsked ? 0 : isAnswered ? REST_MIN_MS : restMs(clock.monotonicMs() - startedAtMs, hasMore),
      reachedAt: this.#recent.reachedAt(now),
      isAnswered,
      write: (tx) => this.#record(tx, part, whole),
      afterwards: () => this.#tell(part, whole),
    }
  }

  /** The full audit that is under way, or that is to begin; null if none is. One that somebody asked for begins at once. */
  #fullOf({ full, nextFullAt }: Pick<Cursor, 'full' | 'nextFullAt'>, now: number, requestedAt: number | null) {
    if (full === null) return now >= nextFullAt || requestedAt !== null ? this.#newFull(now, requestedAt) : null
    return full.requestedAt === null && requestedAt !== null ? this.#newFull(now, requestedAt) : full
  }

  #newFull(now: number, requestedAt: number | null): FullAuditState {
    this.#told.clear()
    return newFullAudit(now, requestedAt)
  }

  #newPart(now: number): AuditPart {
    return { now, found: new FindingList(FINDINGS_KEPT), counts: { ...NO_COUNTS } }
  }

  /** Compares what came due lately, until its part of the slice is over. */
  async #auditRecent(
    changeId: string | null,
    part: AuditPart,
    isOver: () => boolean,
  ): Promise<{ changeId: string; hasMore: boolean }> {
    const { now } = part
    const noted = await this.#recent.noteChanges(changeId, now)
    let hasMore = await this.#recent.look(now)
    while (hasMore && !isOver()) hasMore = await this.#recent.look(now)
    for (;;) {
      const compared = await this.#recent.compare(now)
      if (compared === undefined) return { changeId: noted, hasMore }
      this.#note(part, compared)
      if (isOver()) return { changeId: noted, hasMore: true }
    }
  }

  /** Goes on with a full audit, at least by one page. */
  async #auditFull(
    state: FullAuditState,
    part: AuditPart,
    { legacyUntil, isOver }: { readonly legacyUntil: number | null; readonly isOver: () => boolean },
  ): Promise<FullAuditState & { readonly isWhole: boolean }> {
    let { after } = state
    let isWhole = false
    const counts = { ...state.counts }
    do {
      const page = await this.#full.page({ ...state, after }, { now: part.now, legacyUntil })
      this.#note(part, page)
      addTo(counts, page.counts)
      after = page.last ?? after
      isWhole = page.isEnd
    } while (!isWhole && !isOver())
    const { total, repaired } = part.found
    return { ...state, after, counts, isWhole, findings: state.findings + total, repaired: state.repaired + repaired }
  }

  #note(part: AuditPart, { counts, findings }: Pick<SlotAuditResult, 'counts' | 'findings'>): void {
    addTo(part.counts, counts)
    for (const finding of findings) {
      const name = `${finding.kind} ${finding.scheduleId ?? ''} ${finding.scheduledFor ?? ''}`
      if (!finding.isRepaired && this.#told.has(name)) continue
      this.#told.add(name)
      part.found.add(finding)
    }
  }

  /** Writes down a full audit that is over, or what was found on the way. */
  async #record(tx: Tx, { now, found, counts }: AuditPart, whole: FullAuditState | null): Promise<void> {
    if (whole === null && found.total === 0) return
    const startedAt = whole?.startedAt ?? now
    const id = identifierAt(startedAt)
    await insertAudit(tx, {
      id,
      isWhole: whole !== null,
      from: startedAt - Math.min(this.#options.windowMs, this.#options.retentionMs),
      to: now,
      startedAt,
      ...(whole?.counts ?? counts),
      findings: whole?.findings ?? found.total,
      repaired: whole?.repaired ?? found.repaired,
      now: this.#deps.clock.databaseNow(),
    })
    if (found.total > 0) await insertFindings(tx, { auditId: id, findings: found.kept, now: new Date(now) })
  }

  #tell({ found }: AuditPart, whole: FullAuditState | null): void {
    const { events } = this.#deps
    const { total, repaired } = found
    if (total > 0) events.emit('audit.found', { findings: total, repaired })
    if (whole === null) return
    const { slots, unreadable, truncated } = whole.counts
    const { findings } = whole
    events.emit('audit.finished', { findings, repaired: whole.repaired, slots, unaudited: unreadable + truncated })
  }
}

/** What one slice, or one audit at once, does. */
interface AuditPart {
  readonly now: number
  readonly found: FindingList
  readonly counts: Record<keyof SlotAuditCounts, number>
}

const NO_COUNTS = { schedules: 0, slots: 0, unreadable: 0, truncated: 0 }

function addTo(sum: Record<keyof SlotAuditCounts, number>, counts: SlotAuditCounts): void {
  for (const name of Object.keys(NO_COUNTS) as (keyof SlotAuditCounts)[]) sum[name] += counts[name]
}

function countsOf({ counts, found }: AuditPart, isWhole: boolean): AuditCounts {
  return { ...counts, findings: found.counts, repaired: found.repaired, isWhole }
}

/** So long that all slices together take no more than their share of the time. */
function restMs(tookMs: number, hasMore: boolean): number {
  return Math.min(REST_MAX_MS, Math.max(tookMs * (1 / SHARE - 1), hasMore ? REST_MIN_MS : REST_IDLE_MS))
}

/** A cursor that another version left is begun anew, but for what older versions left in the ledger. */
function cursorOf(stored: unknown): Cursor {
  const known = CURSOR.safeParse(stored ?? {})
  if (known.success) return known.data
  const legacy = CURSOR.pick({ legacyUntil: true }).safeParse(stored)
  return CURSOR.parse(legacy.success ? legacy.data : {})
}
