import type { NewFinding } from '../store/audits.ts'
import type { Db } from '../store/database.ts'
import { findLedgerPage, listStrandedRuns, type LedgerPosition } from '../store/ledger-pages.ts'
import { listPartitions } from '../store/partitions.ts'
import type { LedgerAudit } from './ledger-audit.ts'
import { NO_SUMS, type LedgerSums } from './ledger-counts.ts'
import { strandedFinding } from './ledger-findings.ts'
import { SLOTS_MAX, type SlotAudit, type SlotAuditCounts } from './slot-audit.ts'
import { SlotCalendar } from './slot-calendar.ts'
import { readCadence, SpecCache, type AuditWindow } from './spec-cache.ts'

export interface FullAuditDeps {
  readonly db: Db
  readonly slots: SlotAudit
  readonly ledger: LedgerAudit
}

export interface FullAuditOptions {
  /** How far back slots are compared, whichever version wrote their lines. */
  readonly windowMs: number
  /** For how long the ledger remembers. */
  readonly retentionMs: number
  /** A page reads so many runs, and as many attempts. @default 5000 */
  readonly linesPerPage?: number
}

/** Where the next page of a full audit begins. */
export interface FullAuditPlace {
  /** First the ledger of every schedule, then all open runs. */
  readonly step: 'ledger' | 'open_runs'
  readonly at: LedgerPosition
  /** Of the lines of the schedule there that were looked at already. */
  readonly sums: LedgerSums
}

/** How far a full audit has got. */
export interface FullAuditState {
  readonly startedAt: number
  /** When somebody asked for it; null if nobody did. */
  readonly requestedAt: number | null
  readonly next: FullAuditPlace
  readonly counts: SlotAuditCounts
  readonly findings: number
  readonly repaired: number
}

export interface FullAuditPage {
  readonly counts: SlotAuditCounts
  readonly findings: readonly NewFinding[]
  /** Null if this page was the last. */
  readonly next: FullAuditPlace | null
}

/** Schedules of a page of which the same part is looked at. */
interface Segment {
  readonly ids: readonly string[]
  /** The first slot; null: from the earliest on. */
  readonly from: number | null
  /** Before this slot; null: up to the latest. */
  readonly before: number | null
}

const FIRST: LedgerPosition = { scheduleId: '00000000-0000-0000-0000-000000000000', slot: null }
const SCHEDULES_PER_PAGE = 200
const LINES_PER_PAGE = 5000
const OPEN_RUNS_PER_PAGE = 2000
/** For how long a window of slots is used: the specs of many schedules are the same, and are read once for all pages meanwhile. */
const WINDOW_KEPT_MS = 600_000
/** Upkeep may drop a month while a window is in use: slots at the edge of what the ledger remembers are left out. */
const EDGE_MS = 3_600_000
const NO_COUNTS: SlotAuditCounts = { schedules: 0, slots: 0, unreadable: 0, truncated: 0 }

/**
 * Looks at everything, page by page in the order of schedules and their slots: at the slots that the ledger remembers against the
 * specs, at all runs against their attempts, revisions and counts; then at open runs whose schedule is gone.
 */
export class FullAudit {
  readonly #deps: FullAuditDeps
  readonly #options: FullAuditOptions
  readonly #calendar = new SlotCalendar(readCadence)
  #specs: SpecCache | undefined

  constructor(deps: FullAuditDeps, options: FullAuditOptions) {
    this.#deps = deps
    this.#options = options
  }

  /** @param p.legacyUntil what ended up to this instant was written by an older version; null: nothing was */
  async page(
    { startedAt, next, requestedAt }: Pick<FullAuditState, 'startedAt' | 'next' | 'requestedAt'>,
    { now, legacyUntil }: { readonly now: number; readonly legacyUntil: number | null },
  ): Promise<FullAuditPage> {
    if (next.step === 'open_runs') return this.#openRuns(next.at)
    const { slots, ledger, db } = this.#deps
    const { linesPerPage: lines = LINES_PER_PAGE } = this.#options
    const page = await findLedgerPage(db, { from: next.at, schedules: SCHEDULES_PER_PAGE, lines })
    const completeSince = Math.max(await this.#completeSince(now), legacyUntil ?? -Infinity)
    const counts = { ...NO_COUNTS }
    const findings: NewFinding[] = []
    let { sums } = next
    for (const segment of segmentsOf(page.scheduleIds, next.at, page.next)) {
      const { ids, from, before } = segment
      const specs = this.#specsOf(segment, { now, startedAt, completeSince })
      const compared = await slots.run({ ids, specs, now })
      add(counts, compared.counts, from === null)
      const isWhole = from === null && before === null
      const part = isWhole ? null : { from, before, sums: from === null ? NO_SUMS : sums }
      const task = { ids, part, now, legacyUntil, completeSince, isAsked: requestedAt !== null }
      const ofLedger = await ledger.run(task)
      findings.push(...compared.findings, ...ofLedger.findings)
      sums = ofLedger.sums
    }
    return { counts, findings, next: placeAfter(page.next, sums) }
  }

  /** A run whose schedule is gone belongs to no page of schedules. */
  async #openRuns(from: LedgerPosition): Promise<FullAuditPage> {
    const { runs, next } = await listStrandedRuns(this.#deps.db, { from, limit: OPEN_RUNS_PER_PAGE })
    const findings = runs.map(strandedFinding)
    return { counts: NO_COUNTS, findings, next: next && { step: 'open_runs', at: next, sums: NO_SUMS } }
  }

  /** Never of before the audit began: what came due by then is compared. Of a part, the window is its own. */
  #specsOf(
    { from, before }: Segment,
    p: { readonly now: number; readonly startedAt: number; readonly completeSince: number },
  ): SpecCache {
    const whole = this.#wholeSpecs(p)
    if (from === null && before === null) return whole
    const window: AuditWindow = {
      from: Math.max(whole.window.from, from ?? -Infinity),
      to: before === null ? whole.window.to : Math.min(before - 1, whole.window.to),
      dueUntil: whole.window.to,
    }
    return new SpecCache(window, SLOTS_MAX, this.#calendar)
  }

  #wholeSpecs({
    now,
    startedAt,
    completeSince,
  }: {
    readonly now: number
    readonly startedAt: number
    readonly completeSince: number
  }): SpecCache {
    const { windowMs, retentionMs } = this.#options
    const known = this.#specs
    if (known !== undefined && known.window.to >= Math.max(startedAt, now - WINDOW_KEPT_MS)) return known
    const from = Math.max(now - retentionMs + EDGE_MS, Math.min(now - windowMs, completeSince))
    this.#specs = new SpecCache({ from, to: now }, SLOTS_MAX, this.#calendar)
    return this.#specs
  }

  /**
   * Since when no line was dropped: for as long as the ledger remembers, and no further back than its months follow each other
   * without a gap, for somebody may have made it remember longer only lately.
   */
  async #completeSince(now: number): Promise<number> {
    const months = (await listPartitions(this.#deps.db)).filter(({ table }) => table === 'runs').toReversed()
    const isBroken = months.findIndex(({ to }, at) => at > 0 && to.getTime() !== months[at - 1]?.from.getTime())
    const unbroken = isBroken === -1 ? months : months.slice(0, isBroken)
    return Math.max(now - this.#options.retentionMs, unbroken.at(-1)?.from.getTime() ?? now)
  }
}

/** A full audit that has not looked at anything yet. */
export function newFullAudit(startedAt: number, requestedAt: number | null): FullAuditState {
  const next: FullAuditPlace = { step: 'ledger', at: FIRST, sums: NO_SUMS }
  return { startedAt, requestedAt, next, counts: NO_COUNTS, findings: 0, repaired: 0 }
}

/** The schedule at which the page begins, those that lie in it as a whole, and the one at which it ends. */
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

function placeAfter(next: LedgerPosition | null, sums: LedgerSums): FullAuditPlace {
  if (next === null) return { step: 'open_runs', at: FIRST, sums: NO_SUMS }
  return { step: 'ledger', at: next, sums: next.slot === null ? NO_SUMS : sums }
}

/** A schedule whose lines are on several pages is counted once. */
function add(sum: Record<keyof SlotAuditCounts, number>, counts: SlotAuditCounts, isFirstPart: boolean): void {
  sum.slots += counts.slots
  sum.truncated += counts.truncated
  if (!isFirstPart) return
  sum.schedules += counts.schedules
  sum.unreadable += counts.unreadable
}
