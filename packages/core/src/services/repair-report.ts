import { identifierAt } from '../identifier.ts'
import { insertAudit, insertFindings, type NewFinding } from '../store/audits.ts'
import type { Tx } from '../store/database.ts'

/**
 * Writes down the findings that a transaction repairs, in that transaction: an audit that ends before it has stored its report must
 * not leave a repair that nobody is told of. Findings that are not repaired are found again, and are written with the report.
 * @param p.now of the slice
 * @param p.databaseNow an instant that a test names; null: Postgres' own
 */
export async function reportRepairs(
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
    schedules: 0,
    slots: 0,
    unreadable: 0,
    truncated: 0,
    findings: repaired.length,
    repaired: repaired.length,
    lost: repaired.filter(({ kind }) => kind === 'slot_lost').length,
    now: p.databaseNow,
  })
  await insertFindings(tx, { auditId: id, findings: repaired, now: new Date(p.now) })
}
