import { FINDING_KINDS, type FindingKind } from '@carillon/api'

import type { Tx } from '../db/database.ts'
import { identifierAt } from '../kernel/ids.ts'
import { insertAudit, type ComparedCounts } from './store/audits.ts'
import { insertFindings, type NewFinding } from './store/findings.ts'

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
const FINDINGS_KEPT = 10_000

/** What one slice has compared and found so far. Counts every finding, and keeps the first ones. */
export class AuditReport {
  readonly now: number
  readonly #keep: number
  readonly #reported: Set<string>
  readonly #kept: NewFinding[] = []
  readonly #byKind: Record<FindingKind, number>
  #compared = NO_COUNTS
  #repaired = 0

  /**
   * @param reported unrepaired findings that an earlier slice has stored: this report leaves them out. The set itself is not changed,
   * because this report may never be stored.
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

  /** Unrepaired findings that earlier slices stored, plus those that this report will store. */
  get reported(): ReadonlySet<string> {
    return this.#reported
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

  #isNew({ kind, scheduleId, scheduledFor, isRepaired }: NewFinding): boolean {
    if (isRepaired) return true
    const name = `${kind} ${scheduleId ?? ''} ${scheduledFor ?? ''}`
    if (this.#reported.has(name)) return false
    // Beyond the limit, a fault that both the recent and the full audit find is reported twice.
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
