import type { Clock } from '../clock.ts'
import type { Jobs } from '../engine.ts'
import type { Events } from '../events.ts'
import { identifierAt } from '../identifier.ts'
import { Service } from '../service.ts'
import { insertAudit, insertFindings, type FindingKind } from '../store/audits.ts'
import { transact, type Db } from '../store/database.ts'
import { readNow } from '../store/now.ts'
import { FindingList } from './finding-list.ts'
import { auditJobs } from './job-audit.ts'
import { SlotAudit, type SlotAuditCounts } from './slot-audit.ts'
import type { AuditWindow } from './spec-book.ts'

export interface AuditorDeps {
  readonly db: Db
  readonly clock: Clock
  readonly events: Events
  readonly jobs: Jobs
}

export interface AuditorOptions {
  /** Between two audits. @default a day */
  readonly periodMs?: number
  /** How far back slots are audited; never further than the ledger remembers. @default 26 hours */
  readonly windowMs?: number
  /** For how long the ledger remembers. @default 90 days */
  readonly retentionMs?: number
  /** How late an active schedule may be before that is a finding. @default a minute */
  readonly pastDueMs?: number
}

export interface AuditCounts extends SlotAuditCounts {
  readonly findings: Readonly<Record<FindingKind, number>>
  readonly repaired: number
}

const HOUR_MS = 3_600_000
const DAY_MS = 24 * HOUR_MS
/**
 * A day, an hour for the longest spread, by which a slot of yesterday's window may have come due after its end, and an
 * hour for an audit that starts late.
 */
const WINDOW_DEFAULT_MS = 26 * HOUR_MS
const RETENTION_DEFAULT_MS = 90 * DAY_MS
const PAST_DUE_DEFAULT_MS = 60_000
const PAUSE_AFTER_FAILURE_MS = 60_000
/** The counts are complete; more than this nobody reads. */
const FINDINGS_KEPT = 10_000

/**
 * Recomputes from the specs which slots came due and holds the ledger against them, and whatever waits against what would
 * wake it. It proves the promise of the ledger from the outside: in a sound system it finds nothing.
 *
 * Two at a time do no harm: a repair is a line or a job that is there once, whoever writes it.
 */
export class Auditor extends Service<AuditCounts> {
  override readonly name = 'auditor'
  readonly #deps: AuditorDeps
  readonly #options: Required<AuditorOptions>

  constructor(deps: AuditorDeps, options: AuditorOptions = {}) {
    super(deps, PAUSE_AFTER_FAILURE_MS)
    this.#deps = deps
    this.#options = {
      periodMs: options.periodMs ?? DAY_MS,
      windowMs: options.windowMs ?? WINDOW_DEFAULT_MS,
      retentionMs: options.retentionMs ?? RETENTION_DEFAULT_MS,
      pastDueMs: options.pastDueMs ?? PAST_DUE_DEFAULT_MS,
    }
  }

  async runOnce(): Promise<AuditCounts> {
    const { db, clock } = this.#deps
    const { windowMs, retentionMs, pastDueMs } = this.#options
    const to = await readNow(db, clock.databaseNow())
    const window = { from: to - Math.min(windowMs, retentionMs), to }
    const found = new FindingList(FINDINGS_KEPT)
    const slots = await new SlotAudit(this.#deps, { window, pastDueMs }, found).run()
    await auditJobs(this.#deps, found)
    await this.#record(window, slots, found)
    return { ...slots, findings: found.counts, repaired: found.repaired }
  }

  protected override rest(_counts: AuditCounts, signal: AbortSignal): Promise<void> {
    return this.#deps.clock.sleep(this.#options.periodMs, signal)
  }

  async #record(window: AuditWindow, counted: SlotAuditCounts, found: FindingList): Promise<void> {
    const { db, clock, events } = this.#deps
    const { total, repaired } = found
    const id = identifierAt(window.to)
    await transact(db, clock, async (tx) => {
      const counts = { ...counted, findings: total, repaired }
      await insertAudit(tx, { id, ...window, startedAt: window.to, ...counts, now: clock.databaseNow() })
      await insertFindings(tx, { auditId: id, findings: found.kept })
    })
    const { slots, unreadable, truncated } = counted
    events.emit('audit.finished', { findings: total, repaired, slots, unaudited: unreadable + truncated })
  }
}
