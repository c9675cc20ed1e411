import type { AuditReport } from '@carillon/api'
import type { Audit, Finding } from '@carillon/core'

import { toInstant, toInstantOrNull } from './instant.ts'

type LatestAudit = NonNullable<AuditReport['latest']>

interface Report {
  readonly latest: Audit | undefined
  readonly auditedUntil: number | null
  /** Of the caller's own project, and of none. */
  readonly findings: readonly Finding[]
  /** I9: counts over all tenants are for the installation. */
  readonly hasTotals: boolean
}

const UNTOLD = {
  schedules: null,
  slots: null,
  unreadable: null,
  truncated: null,
  findings: null,
  repaired: null,
} satisfies Partial<LatestAudit>

export function toAuditReport({ latest, auditedUntil, findings, hasTotals }: Report): AuditReport {
  return {
    latest: latest === undefined ? null : toAudit(latest, hasTotals),
    auditedUntil: toInstantOrNull(auditedUntil),
    findings: findings.map(toFinding),
  }
}

function toAudit({ id, isWhole, from, to, startedAt, completedAt, ...totals }: Audit, hasTotals: boolean): LatestAudit {
  return {
    id,
    isWhole,
    from: toInstant(from),
    to: toInstant(to),
    startedAt: toInstant(startedAt),
    completedAt: toInstant(completedAt),
    ...(hasTotals ? totals : UNTOLD),
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
    seenAt: toInstant(finding.seenAt),
  }
}
