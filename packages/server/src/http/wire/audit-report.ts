import type { AuditReport } from '@carillon/api'
import type { Audit, Finding } from '@carillon/core'

import { toInstant, toInstantOrNull } from './instant.ts'

export function toAuditReport(latest: Audit | undefined, findings: readonly Finding[]): AuditReport {
  return { latest: latest === undefined ? null : toAudit(latest), findings: findings.map(toFinding) }
}

function toAudit({ from, to, startedAt, completedAt, ...audit }: Audit): NonNullable<AuditReport['latest']> {
  return {
    ...audit,
    from: toInstant(from),
    to: toInstant(to),
    startedAt: toInstant(startedAt),
    completedAt: toInstant(completedAt),
  }
}

function toFinding(finding: Finding): AuditReport['findings'][number] {
  return {
    kind: finding.kind,
    scheduleId: finding.scheduleId,
    scheduledFor: toInstantOrNull(finding.scheduledFor),
    detail: finding.detail,
    isRepaired: finding.isRepaired,
    foundAt: toInstant(finding.foundAt),
  }
}
