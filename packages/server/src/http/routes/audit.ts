import type { HandlersOf } from '../handler.ts'
import { toAuditReport } from '../wire/audit-report.ts'
import { toInstant } from '../wire/instant.ts'

export const auditHandlers: HandlersOf<'getAudit' | 'requestAudit'> = {
  getAudit: async ({ service: { scheduler }, identity: { isInstallation, caller } }) => {
    const [latest, auditedUntil] = [await scheduler.latestAudit(), await scheduler.auditedUntil()]
    const findings = await scheduler.findings(caller)
    if (isInstallation) findings.push(...(await scheduler.unownedFindings()))
    return { body: toAuditReport({ latest, auditedUntil, findings, hasTotals: isInstallation }) }
  },

  requestAudit: async ({ service: { scheduler } }) => ({
    body: { requestedAt: toInstant(await scheduler.requestAudit()) },
  }),
}
