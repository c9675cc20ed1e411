import type { FindingKind } from '../store/audits.ts'
import { FindingList } from './finding-list.ts'
import type { SlotAuditCounts, SlotAuditResult } from './slot-audit.ts'

/** What a slice, or a whole audit, came to. */
export interface AuditCounts extends SlotAuditCounts {
  readonly findings: Readonly<Record<FindingKind, number>>
  readonly repaired: number
  /** Whether everything has been looked at. */
  readonly isWhole: boolean
}

/** The counts are complete; more than this nobody reads. */
const FINDINGS_KEPT = 10_000

/** What one slice, or one audit at once, does. */
export interface AuditPart {
  readonly now: number
  readonly found: FindingList
  readonly counts: Record<keyof SlotAuditCounts, number>
  /** What is told once this slice is stored, with what was told before. */
  told: Set<string>
}

const NO_COUNTS = { schedules: 0, slots: 0, unreadable: 0, truncated: 0 }

export function addTo(sum: Record<keyof SlotAuditCounts, number>, counts: SlotAuditCounts): void {
  for (const name of Object.keys(NO_COUNTS) as (keyof SlotAuditCounts)[]) sum[name] += counts[name]
}

export function countsOf({ counts, found }: AuditPart, isWhole: boolean): AuditCounts {
  return { ...counts, findings: found.counts, repaired: found.repaired, isWhole }
}

export function note(part: AuditPart, { counts, findings }: Pick<SlotAuditResult, 'counts' | 'findings'>): void {
  addTo(part.counts, counts)
  for (const finding of findings) {
    const name = `${finding.kind} ${finding.scheduleId ?? ''} ${finding.scheduledFor ?? ''}`
    if (!finding.isRepaired) {
      if (part.told.has(name)) continue
      // Beyond that, what both audits find is told twice: better than to fill the memory.
      if (part.told.size < FINDINGS_KEPT) part.told.add(name)
    }
    part.found.add(finding)
  }
}

/** @param told what was told before; it stays as it is until this part is stored */
export function newPart(now: number, told: ReadonlySet<string>): AuditPart {
  return { now, found: new FindingList(FINDINGS_KEPT), counts: { ...NO_COUNTS }, told: new Set(told) }
}
