import type { NewFinding } from '../store/audits.ts'
import type { Db } from '../store/database.ts'
import { listPartitions } from '../store/partitions.ts'
import type { LedgerAudit } from './ledger-audit.ts'
import { SLOTS_MAX, type SlotAudit, type SlotAuditCounts } from './slot-audit.ts'
import { SpecCache } from './spec-cache.ts'

export interface FullAuditDeps {
  readonly db: Db
  readonly slots: SlotAudit
  readonly ledger: LedgerAudit
}

export interface FullAuditOptions {
  /** How far back slots are compared. */
  readonly windowMs: number
  /** For how long the ledger remembers. */
  readonly retentionMs: number
}

/** How far a full audit has got. */
export interface FullAuditState {
  readonly startedAt: number
  /** When somebody asked for it; null if nobody did. */
  readonly requestedAt: number | null
  /** The last schedule that was looked at. */
  readonly after: string
  readonly counts: SlotAuditCounts
  readonly findings: number
  readonly repaired: number
}

export interface FullAuditPage {
  readonly counts: SlotAuditCounts
  readonly findings: readonly NewFinding[]
  /** The last schedule of the page; null if there is none. */
  readonly last: string | null
  /** Whether no schedule follows. */
  readonly isEnd: boolean
}

const BEFORE_ALL_IDS = '00000000-0000-0000-0000-000000000000'
const SCHEDULES_PER_PAGE = 200
/** A page reads so many runs, and as many attempts, unless one schedule alone has more. */
const RUNS_PER_PAGE = 5000
/** For how long a window of slots is used: the specs of many schedules are the same, and are read once for all pages meanwhile. */
const WINDOW_KEPT_MS = 600_000

/**
 * Looks at everything, page by page in the order of schedules: at the slots of the last day against the specs, and at all runs that
 * the ledger remembers against their attempts, revisions and counts.
 */
export class FullAudit {
  readonly #deps: FullAuditDeps
  readonly #options: FullAuditOptions
  #specs: SpecCache | undefined

  constructor(deps: FullAuditDeps, options: FullAuditOptions) {
    this.#deps = deps
    this.#options = options
  }

  /** @param p.legacyUntil what ended up to this instant was written by an older version; null: nothing was */
  async page(
    { startedAt, after, requestedAt }: Pick<FullAuditState, 'startedAt' | 'after' | 'requestedAt'>,
    { now, legacyUntil }: { readonly now: number; readonly legacyUntil: number | null },
  ): Promise<FullAuditPage> {
    const { slots, ledger } = this.#deps
    const page = { after, limit: SCHEDULES_PER_PAGE, runsMax: RUNS_PER_PAGE }
    const compared = await slots.run({ page, specs: this.#specsAt(now, startedAt), now })
    const last = compared.schedules.at(-1)
    if (last === undefined) return { counts: compared.counts, findings: compared.findings, last: null, isEnd: true }
    const ids = compared.schedules.map(({ id }) => id)
    const completeSince = Math.max(await this.#completeSince(now), legacyUntil ?? -Infinity)
    const ofLedger = await ledger.run({ ids, now, legacyUntil, completeSince, isAsked: requestedAt !== null })
    const findings = [...compared.findings, ...ofLedger]
    return { counts: compared.counts, findings, last: last.id, isEnd: last.isEnd }
  }

  /** Never of before the audit began: what came due by then is compared. */
  #specsAt(now: number, startedAt: number): SpecCache {
    const { windowMs, retentionMs } = this.#options
    const known = this.#specs
    if (known !== undefined && known.window.to >= Math.max(startedAt, now - WINDOW_KEPT_MS)) return known
    this.#specs = new SpecCache({ from: now - Math.min(windowMs, retentionMs), to: now }, SLOTS_MAX)
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
  const counts = { schedules: 0, slots: 0, unreadable: 0, truncated: 0 }
  return { startedAt, requestedAt, after: BEFORE_ALL_IDS, counts, findings: 0, repaired: 0 }
}
