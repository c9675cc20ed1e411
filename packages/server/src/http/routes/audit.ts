import type { HandlersOf } from '../handler.ts'
import { wallNow } from '../wall-clock.ts'
import { toAuditReport } from '../wire/audit-report.ts'
import { toInstant } from '../wire/instant.ts'

export const auditHandlers: HandlersOf<'getAudit' | 'requestAudit'> = {
  getAudit: async ({ service: { scheduler }, caller }) => ({
    body: toAuditReport(await scheduler.latestAudit(), await scheduler.findings(caller)),
  }),

  requestAudit: async ({ service: { scheduler, clock } }) => {
    await scheduler.requestAudit()
    return { body: { requestedAt: toInstant(wallNow(clock)) } }
  },
}
