import { FINDING_KINDS, type FindingKind } from '@carillon/api'

import type { Tx } from '../db/database.ts'
import { identifierAt } from '../kernel/ids.ts'
import { insertAudit, type ComparedCounts } from './store/audits.ts'
import { insertFindings, type Fault, type NewFinding } from './store/findings.ts'

export const NO_COUNTS: ComparedCounts = { schedules: 0, slots: 0, unreadable: 0, truncated: 0 }

export function addCounts(a: ComparedCounts, b: ComparedCounts): ComparedCounts {
  return {
    schedules: a.schedules + b.schedules,
    slots: a.slots + b.slots,
    unreadable: a.unreadable + b.unreadable,
    truncated: a.truncated + b.truncated,
  }
}

/** The result of a slice, or of a whole audit. */
export interface AuditCounts extends ComparedCounts {
  readonly findings: Readonly<Record<FindingKind, number>>
  readonly repaired: number
  /** True if a full audit is finished. */
  readonly isWhole: boolean
}

/**
 * How many findings a report keeps, and how many it remembers as reported. Beyond that it only counts them. The limit keeps a badly damaged
 * ledger from filling the memory.
 */
export const FINDINGS_KEPT = 10_000

/** Names a fault: two findings with the same name are one fault that was found twice. */
export function faultName({ kind, scheduleId, scheduledFor }: Fault): string {
  return `${kind} ${scheduleId ?? ''} ${scheduledFor ?? ''}`
}

/** What one slice has compared and found so far. Counts every finding, and keeps the first ones. */
export class AuditReport {
  readonly now: number
  readonly #keep: number
  readonly #reported: Set<string>
  /** The faults whose unrepaired findings this report keeps. */
  readonly #found = new Set<string>()
  readonly #kept: NewFinding[] = []
  readonly #byKind: Record<FindingKind, number>
  #compared = NO_COUNTS
  #repaired = 0

  /**
   * @param reported faults whose unrepaired findings an earlier slice has stored: this report leaves them out. The set itself is not
   * changed, because this report may never be stored.
   */
  constructor(now: number, reported: ReadonlySet<string>, keep = FINDINGS_KEPT) {
    this.now = now
    this.#keep = keep
    this.#reported = new Set(reported)
    // `fromEntries` types every key as string.
    this.#byKind = Object.fromEntries(FINDING_KINDS.map((kind) => [kind, 0])) as Record<FindingKind, number>
  }

  add({ counts, findings }: { readonly counts: ComparedCounts; readonly findings: readonly NewFinding[] }): void {
    this.#compared = addCounts(this.#compared, counts)
    for (const finding of findings) if (this.#isNew(finding)) this.#addFinding(finding)
  }

  /** The faults whose unrepaired findings earlier slices stored, plus those that this report will store. */
  get reported(): ReadonlySet<string> {
    return this.#reported
  }

  /** How many unrepaired findings there are, without those of the given faults. */
  countUnrepaired(except: ReadonlySet<string>): number {
    return this.total - this.repaired - [...this.#found].filter((name) => except.has(name)).length
  }

  get kept(): readonly NewFinding[] {
    return this.#kept
  }

  get compared(): ComparedCounts {
    return this.#compared
  }

  get total(): number {
    return Object.values(this.#byKind).reduce((sum, count) => sum + count, 0)
  }

  get repaired(): number {
    return this.#repaired
  }

  toCounts(isWhole: boolean): AuditCounts {
    return { ...this.#compared, findings: { ...this.#byKind }, repaired: this.#repaired, isWhole }
  }

  #isNew(finding: NewFinding): boolean {
    if (finding.isRepaired) return true
    const name = faultName(finding)
    if (this.#reported.has(name) || this.#found.has(name)) return false
    if (this.#found.size < this.#keep) this.#found.add(name)
    // Beyond the limit this report forgets a fault. If the recent and the full audit both find it, the report counts it twice.
    // The list shows it once: `insertFindings` replaces the earlier row.
    if (this.#reported.size < FINDINGS_KEPT) this.#reported.add(name)
    return true
  }

  #addFinding(finding: NewFinding): void {
    this.#byKind[finding.kind] += 1
    if (finding.isRepaired) this.#repaired += 1
    if (this.#kept.length < this.#keep) this.#kept.push(finding)
  }
}

/**
 * Inserts the findings that a transaction repairs, in that same transaction: a crash before the slice is stored must not leave a
 * repair without its finding. Findings that are not repaired are found again, and the slice inserts them when it ends.
 * @param p.now the instant of the slice
 * @param p.databaseNow an instant that a test sets; null: Postgres' clock
 */
export async function insertRepairs(
  tx: Tx,
  p: { findings: readonly NewFinding[]; now: number; databaseNow: Date | null },
): Promise<void> {
  const repaired = p.findings.filter(({ isRepaired }) => isRepaired)
  if (repaired.length === 0) return
  const id = identifierAt(p.now)
  await insertAudit(tx, {
    id,
    isWhole: false,
    from: p.now,
    to: p.now,
    startedAt: p.now,
    ...NO_COUNTS,
    findings: repaired.length,
    repaired: repaired.length,
    lost: repaired.filter(({ kind }) => kind === 'slot_lost').length,
    now: p.databaseNow,
  })
  await insertFindings(tx, { auditId: id, findings: repaired, now: new Date(p.now) })
}
