import { wallNow } from '../../clock.ts'
import { renderCalendar } from '../calendar.ts'
import type { HandlersOf } from '../operations.ts'
import { withRenamedFields } from '../problems.ts'
import { toAuditReport, toInstant } from '../wire.ts'

/** Views over a whole project: live events, the calendar and the audit. */
export const systemHandlers: HandlersOf<'followEvents' | 'getCalendar' | 'getAudit' | 'requestAudit'> = {
  followEvents: async ({ service: { eventHub }, identity, headers, query, isStillAllowed }) => {
    // On a reconnect a browser repeats the URL and adds the header, so the header is newer.
    const isInHeader = headers['last-event-id'] !== undefined
    const lastEventId = headers['last-event-id'] ?? query.after
    const body = await withRenamedFields({ cursor: isInHeader ? 'Last-Event-ID' : 'query.after' }, () =>
      eventHub.follow({ identity, lastEventId, isStillAllowed }),
    )
    return { body, headers: { 'x-accel-buffering': 'no' } }
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
