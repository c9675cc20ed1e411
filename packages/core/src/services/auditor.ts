import { identifierAt } from '../identifier.ts'
import { AUDIT_TURN, insertAudit, insertFindings } from '../store/audits.ts'
import { transact, type Tx } from '../store/database.ts'
import { readNow } from '../store/now.ts'
import { readCursor, type ClaimedTurn } from '../store/service-turns.ts'
import { cursorOf, type AuditCursor } from './audit-cursor.ts'
import { addTo, countsOf, newPart, note, type AuditCounts, type AuditPart } from './audit-part.ts'
import { FullAudit, newFullAudit, type FullAuditPlace, type FullAuditState } from './full-audit.ts'
import { LedgerAudit } from './ledger-audit.ts'
import { RecentAudit, type NotedChanges } from './recent-audit.ts'
import { SlotAudit } from './slot-audit.ts'
import { TimeSlices } from './time-slices.ts'
import { TurnService, type Slice, type TurnServiceDeps } from './turn-service.ts'

export type { AuditCounts } from './audit-part.ts'

export type AuditorDeps = TurnServiceDeps

export interface AuditorOptions {
  /**
   * How far back slots are compared though an older version wrote their lines; never further than the ledger remembers. What this
   * version wrote is compared for as long as the ledger remembers. @default 26 hours
   */
  readonly windowMs?: number
  /** For how long the ledger remembers. @default 90 days */
  readonly retentionMs?: number
  /** How many runs, and as many attempts, one page of a full audit reads. @default 5000 */
  readonly linesPerPage?: number
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
/** A slice that takes longer waits for a lock or a slow Postgres, not for a core: it must not cost hours of rest. */
const CHARGED_MAX_MS = 1000
/** Of a slice, for what came due lately. The rest is for the full audit, which must not starve. */
const RECENT_PART = 0.75
/** Between slices while there is more to do, and while there is not. Also while it rests for its share, it reads the agenda this often. */
const REST_MIN_MS = 1000
const REST_IDLE_MS = 15_000
/** From the end of a full audit to the next. With the time that it takes, damage in a small database is found within ten minutes. */
const FULL_EVERY_MS = 120_000

/**
 * Proves the promise of the ledger from the outside; in a sound system it finds nothing. It goes on all the time, on one worker, a
 * slice at a time, and takes one hundredth of a core. Each slice compares what came due lately with the specs (`RecentAudit`), and
 * goes on with the audit of everything there is (`FullAudit`). An audit that somebody asks for is a full one that does not rest.
 *
 * What is found is written down and told at once. What is repaired is written down in the transaction that repairs it. A slice whose
 * end could not be stored is repeated, by this worker or another one, and finds again what was not repaired.
 */
export class Auditor extends TurnService<AuditCounts> {
  override readonly name = 'auditor'
  readonly #deps: AuditorDeps
  readonly #options: Required<Omit<AuditorOptions, 'linesPerPage'>>
  readonly #recent: RecentAudit
  readonly #full: FullAudit
  /** What was stored since the last full audit began, but for what was repaired: both audits may find it. */
  #told: ReadonlySet<string> = new Set()

  constructor(deps: AuditorDeps, options: AuditorOptions = {}) {
    super(deps, { turn: AUDIT_TURN, lookMs: LOOK_MS, pauseAfterFailureMs: PAUSE_AFTER_FAILURE_MS })
    this.#deps = deps
    this.#options = {
      windowMs: options.windowMs ?? WINDOW_DEFAULT_MS,
      retentionMs: options.retentionMs ?? RETENTION_DEFAULT_MS,
    }
    const slots = new SlotAudit({ ...deps, slices: new TimeSlices(deps.clock) })
    this.#recent = new RecentAudit({ ...deps, slots })
    this.#full = new FullAudit(
      { ...deps, slots, ledger: new LedgerAudit(deps) },
      { ...this.#options, ...pick(options) },
    )
  }

  /** A full audit at once, whoever has the turn; for tests and tools. */
  async audit(): Promise<AuditCounts> {
    const { db, clock } = this.#deps
    const now = await readNow(db, clock.databaseNow())
    const { legacyUntil } = cursorOf(await readCursor(db, { name: AUDIT_TURN }))
    const part = newPart(now, this.#told)
    const full = await this.#auditFull(newFullAudit(now, now), part, { legacyUntil, isOver: () => false })
    await transact(db, clock, (tx) => this.#record(tx, part, full))
    this.#tell(part, full)
    return countsOf(part, true)
  }

  protected override forget(): void {
    this.#recent.forget()
    this.#told = new Set()
  }

  protected override abandon(): void {
    this.#recent.putBack()
  }

  protected override async slice({ now, cursor, requestedAt, reachedAt }: ClaimedTurn): Promise<Slice<AuditCounts>> {
    const { clock } = this.#deps
    const startedAtMs = clock.monotonicMs()
    const known = cursorOf(cursor)
    const { legacyUntil, nextFullAt } = known
    const isResting = requestedAt === null && now < known.restUntil
    const part = newPart(now, this.#told)
    const full = isResting ? null : fullOf(known, now, requestedAt)
    if (full !== null && full !== known.full) part.told = new Set()
    const sliceMs = requestedAt === null ? SLICE_MS : SLICE_ASKED_MS
    const isOver = (share: number): boolean => clock.monotonicMs() - startedAtMs >= sliceMs * share
    const ahead = await this.#lookAhead(known.changeId, { now, reachedAt, isOver: () => isOver(RECENT_PART) })
    const isBehind = !isResting && (await this.#compareRecent(part, () => isOver(RECENT_PART)))
    const went = full && (await this.#auditFull(full, part, { legacyUntil, isOver: () => isOver(1) }))
    const whole = went?.isWhole === true ? went : null
    const coveredUntil = whole?.startedAt ?? null
    const isAnswered = whole !== null && requestedAt !== null && requestedAt <= whole.startedAt
    const hasMore = isResting || isBehind || ahead.hasMore || (went !== null && whole === null)
    const tookMs = clock.monotonicMs() - startedAtMs
    // What somebody asked for is not part of its share.
    const restUntil = requestedAt === null ? restAfter(Math.max(now, known.restUntil), tookMs) : known.restUntil
    return {
      counts: countsOf(part, whole !== null),
      cursor: {
        legacyUntil,
        changeId: ahead.changeId,
        nextFullAt: whole === null ? nextFullAt : now + FULL_EVERY_MS,
        restUntil,
        full: isResting ? known.full : whole === null ? went : null,
      } satisfies AuditCursor,
      restMs: requestedAt !== null ? (isAnswered ? REST_MIN_MS : 0) : hasMore ? restMs(restUntil - now) : REST_IDLE_MS,
      reachedAt: this.#recent.reachedAt(now, coveredUntil),
      isAnswered,
      write: (tx) => this.#record(tx, part, whole),
      afterwards: () => {
        this.#recent.keep(coveredUntil)
        this.#told = part.told
        this.#tell(part, whole)
      },
    }
  }

  /** Lists what is about to come due and what was changed. */
  async #lookAhead(
    changeId: string | null,
    {
      now,
      reachedAt,
      isOver,
    }: { readonly now: number; readonly reachedAt: number | null; readonly isOver: () => boolean },
  ): Promise<NotedChanges> {
    const noted = await this.#recent.noteChanges(changeId, now)
    let hasMore = await this.#recent.look(now, reachedAt)
    while (hasMore && !isOver()) hasMore = await this.#recent.look(now, reachedAt)
    return { changeId: noted.changeId, hasMore: noted.hasMore || hasMore }
  }

  /**
   * Compares what came due lately, until its part of the slice is over.
   * @returns whether there is more to compare
   */
  async #compareRecent(part: AuditPart, isOver: () => boolean): Promise<boolean> {
    for (;;) {
      const compared = await this.#recent.compare(part.now)
      if (compared === undefined) return false
      note(part, compared)
      if (isOver()) return true
    }
  }

  /** Goes on with a full audit, at least by one page. */
  async #auditFull(
    state: FullAuditState,
    part: AuditPart,
    { legacyUntil, isOver }: { readonly legacyUntil: number | null; readonly isOver: () => boolean },
  ): Promise<FullAuditState & { readonly isWhole: boolean }> {
    let next: FullAuditPlace | null = state.next
    let last = state.next
    const counts = { ...state.counts }
    do {
      const page = await this.#full.page({ ...state, next }, { now: part.now, legacyUntil })
      note(part, page)
      addTo(counts, page.counts)
      last = next
      next = page.next
    } while (next !== null && !isOver())
    const { total, repaired } = part.found
    return {
      ...state,
      next: next ?? last,
      counts,
      isWhole: next === null,
      findings: state.findings + total,
      repaired: state.repaired + repaired,
    }
  }

  /** Writes down a full audit that is over, or what was found on the way. */
  async #record(tx: Tx, { now, found, counts }: AuditPart, whole: FullAuditState | null): Promise<void> {
    const findings = found.kept.filter(({ isRepaired }) => !isRepaired)
    if (whole === null && findings.length === 0) return
    const startedAt = whole?.startedAt ?? now
    const id = identifierAt(startedAt)
    await insertAudit(tx, {
      id,
      isWhole: whole !== null,
      from: startedAt - Math.min(this.#options.windowMs, this.#options.retentionMs),
      to: now,
      startedAt,
      ...(whole?.counts ?? counts),
      findings: whole === null ? found.total - found.repaired : whole.findings - whole.repaired,
      // Repairs are written down where they are made.
      repaired: 0,
      lost: 0,
      now: this.#deps.clock.databaseNow(),
    })
    if (findings.length > 0) await insertFindings(tx, { auditId: id, findings, now: new Date(now) })
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

/** The full audit that is under way, or that is to begin; null if none is. One that somebody asked for begins at once. */
function fullOf(
  { full, nextFullAt }: Pick<AuditCursor, 'full' | 'nextFullAt'>,
  now: number,
  requestedAt: number | null,
): FullAuditState | null {
  if (full === null) return now >= nextFullAt || requestedAt !== null ? newFullAudit(now, requestedAt) : null
  return full.requestedAt === null && requestedAt !== null ? newFullAudit(now, requestedAt) : full
}

/** So late that all slices together take no more than their share of the time. */
function restAfter(from: number, tookMs: number): number {
  return from + Math.min(tookMs, CHARGED_MAX_MS) * (1 / SHARE - 1)
}

/** Until the next slice, which may only read the agenda. */
function restMs(leftMs: number): number {
  return Math.min(Math.max(leftMs, REST_MIN_MS), REST_IDLE_MS)
}

function pick({ linesPerPage }: AuditorOptions): Pick<AuditorOptions, 'linesPerPage'> {
  return linesPerPage === undefined ? {} : { linesPerPage }
}
