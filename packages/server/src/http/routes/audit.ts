import type { HandlersOf } from '../handler.ts'
import { toAuditReport } from '../wire/audit-report.ts'
import { toInstant } from '../wire/instant.ts'

export const auditHandlers: HandlersOf<'getAudit' | 'requestAudit'> = {
  getAudit: async ({ service: { scheduler }, identity: { isInstallation, caller } }) => {
    const [latest, findings] = [await scheduler.latestAudit(), await scheduler.findings(caller)]
    return { body: toAuditReport({ latest, findings, hasTotals: isInstallation }) }
  },

  requestAudit: async ({ service: { scheduler } }) => ({
    body: { requestedAt: toInstant(await scheduler.requestAudit()) },
  }),
}
