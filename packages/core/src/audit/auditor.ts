import { type Tx } from '../db/database.ts'
import { type ClaimedTurn, type Slice, TurnService, type TurnServiceDeps } from '../jobs/turn-service.ts'
import { identifierAt } from '../kernel/ids.ts'
import { checkedRetentionMs } from '../policy/retention-days.ts'
import { currentFullAudit, readAuditCursor, restMsAfter, restUntilAfter, type AuditCursor } from './audit-cursor.ts'
import { addCounts, AuditReport, faultName, FINDINGS_KEPT, type AuditCounts } from './findings.ts'
import { FullAudit, type FullAuditPosition, type FullAuditState } from './full-audit.ts'
import { RECENT_WINDOW_MS, RecentAudit, type ReadChanges } from './recent-audit.ts'
import { RunAudit } from './run-audit.ts'
import { SlotAudit } from './slot-audit.ts'
import { AUDIT_TURN, insertAudit } from './store/audits.ts'
import { insertFindings, listUnrepaired } from './store/findings.ts'

export type { AuditCounts } from './findings.ts'

export type AuditorDeps = TurnServiceDeps

/** Faults whose unrepaired findings are stored. Both the recent and the full audit find a lasting fault, and the next full audit again. */
interface ReportedFaults {
  /**
   * Found since the full audit in progress began. If none is in progress: since the last one began. The auditor does not report them
   * again.
   */
  readonly reportedInThisAudit: ReadonlySet<string>
  /**
   * Found from the start of the last full audit until the one in progress began. The auditor reports them once more. A slice does not add
   * them to its count again, because the last full audit counts them.
   */
  readonly reportedInLastAudit: ReadonlySet<string>
}

const NO_FAULTS: ReadonlySet<string> = new Set()

export interface AuditorOptions {
  /**
   * How far back slots are compared even if an older version of Carillon wrote their lines; never beyond the retention. Lines that this
   * version wrote are compared for the whole retention. @default `RECENT_WINDOW_MS`
   */
  readonly windowMs?: number
  /** For how long the ledger keeps lines. @default `checkedRetentionMs()` */
  readonly retentionMs?: number
  /** The most runs, and the most attempts, that one page of a full audit reads. @default `LINES_PER_PAGE` */
  readonly linesPerPage?: number
}

const LOOK_MS = 2000
const PAUSE_AFTER_FAILURE_MS = 1000
/** After this time a slice starts no further page. */
const SLICE_MS = 50
/** The same for a slice whose result a person waits for. */
const SLICE_REQUESTED_MS = 2000
/** The part of a slice for recent slots. The full audit gets the rest, so that it always advances. */
const RECENT_SHARE = 0.75
/**
 * Time from the end of a full audit to the start of the next one. In a small database, this pause and the full audit together take less
 * than ten minutes, so damage is found within that time.
 */
const FULL_EVERY_MS = 120_000

/**
 * Verifies the promises of the ledger; in a sound system it finds nothing. One worker at a time audits, all the time, in slices, and
 * uses one hundredth of a core. Each slice compares the slots that came due recently with the specs (`RecentAudit`), and continues the
 * audit of everything (`FullAudit`). A requested audit is a full one that does not rest.
 *
 * Findings are stored and emitted when their slice is stored. The finding of a repair is stored in the transaction that makes the
 * repair. A slice that could not be stored is repeated, by this worker or another one, and finds again what was not repaired.
 */
export class Auditor extends TurnService<AuditCounts> {
  override readonly name = 'auditor'
  readonly #deps: AuditorDeps
  readonly #options: AuditorOptions & Required<Pick<AuditorOptions, 'windowMs' | 'retentionMs'>>
  readonly #recent: RecentAudit
  readonly #full: FullAudit
  /** Undefined until this worker has read them: another worker may have found them. */
  #reported: ReportedFaults | undefined

  constructor(deps: AuditorDeps, options: AuditorOptions = {}) {
    super(deps, { turn: AUDIT_TURN, lookMs: LOOK_MS, pauseAfterFailureMs: PAUSE_AFTER_FAILURE_MS })
    this.#deps = deps
    this.#options = { windowMs: RECENT_WINDOW_MS, retentionMs: checkedRetentionMs(), ...options }
    const slots = new SlotAudit(deps)
    this.#recent = new RecentAudit({ ...deps, slots })
    this.#full = new FullAudit({ ...deps, slots, runs: new RunAudit(deps) }, this.#options)
  }

  protected override onTurnLost(): void {
    this.#recent.clear()
    this.#reported = undefined
  }

  protected override onSliceFailed(): void {
    this.#recent.rollBack()
  }

  protected override async slice(turn: ClaimedTurn): Promise<Slice<AuditCounts>> {
    const { clock } = this.#deps
    const startedAtMs = clock.monotonicMs()
    const { now, requestedAt, reachedAt } = turn
    const isRequested = requestedAt !== null
    const cursor = readAuditCursor(turn.cursor)
    const { legacyUntil } = cursor
    const isResting = !isRequested && now < cursor.restUntil
    const full = isResting ? null : currentFullAudit(cursor, now, requestedAt)
    const isNewFull = full !== null && full !== cursor.full
    const known = this.#reported ?? (await this.#readReported(cursor.full))
    const reported = isNewFull
      ? {
          reportedInThisAudit: NO_FAULTS,
          reportedInLastAudit: new Set([...known.reportedInLastAudit, ...known.reportedInThisAudit]),
        }
      : known
    const report = new AuditReport(now, reported.reportedInThisAudit)
    const sliceMs = isRequested ? SLICE_REQUESTED_MS : SLICE_MS
    const isOver = (share: number): boolean => clock.monotonicMs() - startedAtMs >= sliceMs * share

    const ahead = await this.#listAhead(cursor.changeId, { now, reachedAt, isOver: () => isOver(RECENT_SHARE) })
    const isBehind = !isResting && (await this.#compareRecent(report, () => isOver(RECENT_SHARE)))
    const continued = full && (await this.#continueFull(full, report, { legacyUntil, isOver: () => isOver(1) }))
    const finished = continued?.isWhole === true ? continued : null

    const coveredUntil = finished?.startedAt ?? null
    const isAnswered = isRequested && finished !== null && requestedAt <= finished.startedAt
    const hasMore = isResting || isBehind || ahead.hasMore || (continued !== null && finished === null)
    // Requested work does not count towards the auditor's share of the time.
    const tookMs = clock.monotonicMs() - startedAtMs
    const restUntil = isRequested ? cursor.restUntil : restUntilAfter(cursor, now, tookMs)
    return {
      counts: report.toCounts(finished !== null),
      cursor: {
        legacyUntil,
        changeId: ahead.changeId,
        nextFullAt: finished === null ? cursor.nextFullAt : now + FULL_EVERY_MS,
        restUntil,
        full: isResting ? cursor.full : finished === null ? continued : null,
      } satisfies AuditCursor,
      restMs: restMsAfter({ isRequested, isAnswered, hasMore, leftMs: restUntil - now }),
      reachedAt: this.#recent.reachedAt(now, coveredUntil),
      isAnswered,
      write: (tx) => this.#insert(tx, report, { finished, reportedInLastAudit: reported.reportedInLastAudit }),
      afterStored: () => {
        this.#recent.commit(coveredUntil)
        this.#reported = {
          reportedInThisAudit: report.reported,
          reportedInLastAudit: finished === null ? reported.reportedInLastAudit : NO_FAULTS,
        }
        this.#emit(report, finished)
      },
    }
  }

  /** @param full the full audit in progress; null: none is */
  async #readReported(full: FullAuditState | null): Promise<ReportedFaults> {
    const found = await listUnrepaired(this.#deps.db, { limit: FINDINGS_KEPT })
    const isCurrent = ({ seenAt }: { readonly seenAt: number }): boolean => full === null || seenAt >= full.startedAt
    return {
      reportedInThisAudit: new Set(found.filter(isCurrent).map(faultName)),
      reportedInLastAudit: new Set(found.filter((finding) => !isCurrent(finding)).map(faultName)),
    }
  }

  /** Lists the schedules that will come due soon, and those that changed. */
  async #listAhead(
    changeId: string | null,
    {
      now,
      reachedAt,
      isOver,
    }: { readonly now: number; readonly reachedAt: number | null; readonly isOver: () => boolean },
  ): Promise<ReadChanges> {
    const changes = await this.#recent.listChanges(changeId, now)
    let hasMore = await this.#recent.listComingDue(now, reachedAt)
    while (hasMore && !isOver()) hasMore = await this.#recent.listComingDue(now, reachedAt)
    return { changeId: changes.changeId, hasMore: changes.hasMore || hasMore }
  }

  /**
   * Compares recent slots until `isOver` says that their share of the slice is used up.
   * @returns true if there is more to compare
   */
  async #compareRecent(report: AuditReport, isOver: () => boolean): Promise<boolean> {
    for (;;) {
      const compared = await this.#recent.compare(report.now)
      if (compared === undefined) return false
      report.add(compared)
      if (isOver()) return true
    }
  }

  /** Continues a full audit by at least one page. */
  async #continueFull(
    state: FullAuditState,
    report: AuditReport,
    { legacyUntil, isOver }: { readonly legacyUntil: number | null; readonly isOver: () => boolean },
  ): Promise<FullAuditState & { readonly isWhole: boolean }> {
    let next: FullAuditPosition | null = state.next
    let last = state.next
    let { counts } = state
    do {
      const page = await this.#full.page({ ...state, next }, { now: report.now, legacyUntil })
      report.add(page)
      counts = addCounts(counts, page.counts)
      last = next
      next = page.next
    } while (next !== null && !isOver())
    const { total, repaired } = report
    return {
      ...state,
      next: next ?? last,
      counts,
      isWhole: next === null,
      findings: state.findings + total,
      repaired: state.repaired + repaired,
    }
  }

  /**
   * Inserts the full audit that this slice finished, or else the findings of the slice, if there are any.
   * @param p.reportedInLastAudit faults that the last full audit counts: the findings of this slice are added to its count
   */
  async #insert(
    tx: Tx,
    report: AuditReport,
    {
      finished,
      reportedInLastAudit,
    }: { readonly finished: FullAuditState | null } & Pick<ReportedFaults, 'reportedInLastAudit'>,
  ): Promise<void> {
    const { now, compared } = report
    const findings = report.kept.filter(({ isRepaired }) => !isRepaired)
    if (finished === null && findings.length === 0) return
    const startedAt = finished?.startedAt ?? now
    const id = identifierAt(startedAt)
    await insertAudit(tx, {
      id,
      isWhole: finished !== null,
      from: startedAt - Math.min(this.#options.windowMs, this.#options.retentionMs),
      to: now,
      startedAt,
      ...(finished?.counts ?? compared),
      findings: finished === null ? report.countUnrepaired(reportedInLastAudit) : finished.findings - finished.repaired,
      // `insertRepairs` has stored the repairs already.
      repaired: 0,
      lost: 0,
      now: this.#deps.clock.databaseNow(),
    })
    if (findings.length > 0) await insertFindings(tx, { auditId: id, findings, now: new Date(now) })
  }

  #emit({ total, repaired }: AuditReport, finished: FullAuditState | null): void {
    const { events } = this.#deps
    if (total > 0) events.emit('audit.found', { findings: total, repaired })
    if (finished === null) return
    const { slots, unreadable, truncated } = finished.counts
    events.emit('audit.finished', {
      findings: finished.findings,
      repaired: finished.repaired,
      slots,
      unaudited: unreadable + truncated,
    })
  }
}
