import { wallNow } from '../../clock.ts'
import { renderCalendar } from '../calendar.ts'
import type { HandlersOf } from '../operation-handlers.ts'
import { withRenamedFields } from '../problems.ts'
import { streamPosition, UNBUFFERED } from '../streams.ts'
import { toAuditReport, toInstant, toTargetKind } from '../wire.ts'

/** Views over a whole project: live events, the calendar and the audit; and what its schedules can call. */
export const systemHandlers: HandlersOf<
  'followEvents' | 'getCalendar' | 'listTargetKinds' | 'getAudit' | 'requestAudit'
> = {
  followEvents: async ({ service: { eventHub }, identity, headers, query, isStillAllowed }) => {
    const { lastEventId, field } = streamPosition(headers, query)
    const body = await withRenamedFields({ cursor: field }, () =>
      eventHub.follow({ identity, lastEventId, isStillAllowed }),
    )
    return { body, headers: UNBUFFERED }
  },

  getCalendar: async ({ service: { scheduler, clock, calendarLimit }, caller, identity: { keyId } }) => {
    calendarLimit.acquire(keyId)
    try {
      const body = await renderCalendar({ scheduler, clock }, caller, wallNow(clock))
      return { body, headers: { 'content-type': 'text/calendar; charset=utf-8' } }
    } finally {
      calendarLimit.release(keyId)
    }
  },

  listTargetKinds: async ({ service: { scheduler } }) => ({
    body: { items: scheduler.targetKinds().map(toTargetKind) },
  }),

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
