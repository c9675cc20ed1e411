import type { Db } from '../db/database.ts'
import { listPartitions } from '../db/months.ts'
import { NIL_UUID } from '../kernel/ids.ts'
import type { AuditWindow } from './expected-slots.ts'
import { runWithoutScheduleFinding } from './finding-texts.ts'
import { addCounts, NO_COUNTS } from './findings.ts'
import type { RunAudit } from './run-audit.ts'
import { NO_SUMS, type LedgerSums } from './run-counts.ts'
import type { SlotAudit } from './slot-audit.ts'
import type { ComparedCounts } from './store/audits.ts'
import type { NewFinding } from './store/findings.ts'
import { findLedgerPage, type LedgerPosition } from './store/ledger-pages.ts'
import { listRunsWithoutSchedule } from './store/open-runs.ts'

export interface FullAuditDeps {
  readonly db: Db
  readonly slots: SlotAudit
  readonly runs: RunAudit
}

export interface FullAuditOptions {
  /** How far back slots are compared even if an older version of Carillon wrote their lines. */
  readonly windowMs: number
  /** For how long the ledger keeps lines. */
  readonly retentionMs: number
  /** The most runs, and the most attempts, that one page reads. @default `LINES_PER_PAGE` */
  readonly linesPerPage?: number
}

/** Where the next page of a full audit begins. */
export interface FullAuditPosition {
  /** The ledger of every schedule comes first, then all open runs. */
  readonly step: 'ledger' | 'open_runs'
  readonly at: LedgerPosition
  /** Sums over the lines of this schedule on earlier pages. */
  readonly sums: LedgerSums
}

/** The progress of a full audit. */
export interface FullAuditState {
  readonly startedAt: number
  /** When a person requested it; null if it was not requested. */
  readonly requestedAt: number | null
  readonly next: FullAuditPosition
  readonly counts: ComparedCounts
  readonly findings: number
  readonly repaired: number
}

export interface FullAuditPage {
  readonly counts: ComparedCounts
  readonly findings: readonly NewFinding[]
  /** Null if this page was the last. */
  readonly next: FullAuditPosition | null
}

/** Schedules of a page that share the bounds of their slots. */
interface Segment {
  readonly ids: readonly string[]
  /** The first slot; null: no lower bound. */
  readonly from: number | null
  /** Exclusive: the first slot behind the range; null: no upper bound. */
  readonly before: number | null
}

const FIRST: LedgerPosition = { scheduleId: NIL_UUID, slot: null }
const SCHEDULES_PER_PAGE = 200
const LINES_PER_PAGE = 5000
const OPEN_RUNS_PER_PAGE = 2000
/** For how long the pages of an audit share one window of slots. */
const WINDOW_KEPT_MS = 600_000
/** How much of the oldest part of the retention is left out: upkeep may drop a month while a window is in use. */
const EDGE_MS = 3_600_000

/**
 * Audits everything, page by page in the order of schedules and their slots. It compares the slots within the retention with the
 * specs, and all runs with their attempts, revisions and counts. At the end it looks for open runs whose schedule is gone.
 */
export class FullAudit {
  readonly #deps: FullAuditDeps
  readonly #options: FullAuditOptions
  #window: AuditWindow | undefined

  constructor(deps: FullAuditDeps, options: FullAuditOptions) {
    this.#deps = deps
    this.#options = options
  }

  /** @param p.legacyUntil runs that ended up to this instant were written by an older version of Carillon; null: none were */
  async page(
    { startedAt, next, requestedAt }: Pick<FullAuditState, 'startedAt' | 'next' | 'requestedAt'>,
    { now, legacyUntil }: { readonly now: number; readonly legacyUntil: number | null },
  ): Promise<FullAuditPage> {
    if (next.step === 'open_runs') return this.#openRuns(next.at)
    const { slots, runs, db } = this.#deps
    const { linesPerPage: lines = LINES_PER_PAGE } = this.#options
    const page = await findLedgerPage(db, { from: next.at, schedules: SCHEDULES_PER_PAGE, lines })
    const completeSince = Math.max(await this.#completeSince(now), legacyUntil ?? -Infinity)
    let counts = NO_COUNTS
    const findings: NewFinding[] = []
    let { sums } = next
    for (const segment of segmentsOf(page.scheduleIds, next.at, page.next)) {
      const { ids, from, before } = segment
      const window = this.#windowOf(segment, { now, startedAt, completeSince })
      const compared = await slots.run({ ids, window, now })
      counts = addCounts(counts, from === null ? compared.counts : withoutSchedules(compared.counts))
      const isWhole = from === null && before === null
      const part = isWhole ? null : { from, before, sums: from === null ? NO_SUMS : sums }
      const task = { ids, part, now, legacyUntil, completeSince, isRequested: requestedAt !== null }
      const checked = await runs.run(task)
      findings.push(...compared.findings, ...checked.findings)
      sums = checked.sums
    }
    return { counts, findings, next: positionAfter(page.next, sums) }
  }

  /** Looks for open runs whose schedule is gone: the pages of schedules do not include them. */
  async #openRuns(from: LedgerPosition): Promise<FullAuditPage> {
    const { runs, next } = await listRunsWithoutSchedule(this.#deps.db, { from, limit: OPEN_RUNS_PER_PAGE })
    const findings = runs.map(runWithoutScheduleFinding)
    return { counts: NO_COUNTS, findings, next: next && { step: 'open_runs', at: next, sums: NO_SUMS } }
  }

  /** A part of a schedule has a window of its own, which ends with the part. */
  #windowOf(
    { from, before }: Segment,
    p: { readonly now: number; readonly startedAt: number; readonly completeSince: number },
  ): AuditWindow {
    const whole = this.#wholeWindow(p)
    if (from === null && before === null) return whole
    return {
      from: Math.max(whole.from, from ?? -Infinity),
      to: before === null ? whole.to : Math.min(before - 1, whole.to),
      dueUntil: whole.to,
    }
  }

  /** The window must not end before the audit began: slots that came due by then have to be compared. */
  #wholeWindow({
    now,
    startedAt,
    completeSince,
  }: {
    readonly now: number
    readonly startedAt: number
    readonly completeSince: number
  }): AuditWindow {
    const { windowMs, retentionMs } = this.#options
    const known = this.#window
    if (known !== undefined && known.to >= Math.max(startedAt, now - WINDOW_KEPT_MS)) return known
    const from = Math.max(now - retentionMs + EDGE_MS, Math.min(now - windowMs, completeSince))
    this.#window = { from, to: now }
    return this.#window
  }

  /**
   * The instant from which on the ledger has every line: not before the start of the retention, and not before the last gap between its
   * months. There is a gap if the retention was shorter until recently.
   */
  async #completeSince(now: number): Promise<number> {
    const months = (await listPartitions(this.#deps.db)).filter(({ table }) => table === 'runs').toReversed()
    const gapAt = months.findIndex(({ to }, at) => at > 0 && to.getTime() !== months[at - 1]?.from.getTime())
    const unbroken = gapAt === -1 ? months : months.slice(0, gapAt)
    return Math.max(now - this.#options.retentionMs, unbroken.at(-1)?.from.getTime() ?? now)
  }
}

/** The state of a full audit before its first page. */
export function newFullAudit(startedAt: number, requestedAt: number | null): FullAuditState {
  const next: FullAuditPosition = { step: 'ledger', at: FIRST, sums: NO_SUMS }
  return { startedAt, requestedAt, next, counts: NO_COUNTS, findings: 0, repaired: 0 }
}

/** The schedule that the page begins within, the schedules that lie in it completely, and the one that it ends within. */
function segmentsOf(ids: readonly string[], from: LedgerPosition, next: LedgerPosition | null): Segment[] {
  const boundsOf = (id: string): Omit<Segment, 'ids'> => ({
    from: id === from.scheduleId ? from.slot : null,
    before: id === next?.scheduleId ? next.slot : null,
  })
  const isWhole = (id: string): boolean => boundsOf(id).from === null && boundsOf(id).before === null
  const whole = ids.filter(isWhole)
  const partOf = (id: string | undefined): Segment[] =>
    id === undefined || isWhole(id) ? [] : [{ ids: [id], ...boundsOf(id) }]
  return [
    ...partOf(ids[0]),
    ...(whole.length === 0 ? [] : [{ ids: whole, from: null, before: null }]),
    ...(ids.length > 1 ? partOf(ids.at(-1)) : []),
  ]
}

function positionAfter(next: LedgerPosition | null, sums: LedgerSums): FullAuditPosition {
  if (next === null) return { step: 'open_runs', at: FIRST, sums: NO_SUMS }
  return { step: 'ledger', at: next, sums: next.slot === null ? NO_SUMS : sums }
}

/** A schedule whose lines are on several pages is counted with its first page. */
function withoutSchedules({ slots, truncated }: ComparedCounts): ComparedCounts {
  return { ...NO_COUNTS, slots, truncated }
}
