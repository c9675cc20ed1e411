import { renderCalendar } from '../calendar/calendar.ts'
import { upcomingSlots } from '../calendar/upcoming-slots.ts'
import type { HandlersOf } from '../handler.ts'
import { wallNow } from '../wall-clock.ts'

const DAYS = 30
const DAY_MS = 86_400_000

export const calendarHandlers: HandlersOf<'getCalendar'> = {
  getCalendar: async ({ service: { scheduler, clock, calendarPlaces }, caller, identity: { keyId } }) => {
    calendarPlaces.take(keyId)
    try {
      const now = wallNow(clock)
      const upcoming = await upcomingSlots({ scheduler, clock }, caller, { from: now, to: now + DAYS * DAY_MS })
      const body = renderCalendar({ ...upcoming, project: caller.projectId, days: DAYS, stampedAt: now })
      return { body, headers: { 'content-type': 'text/calendar; charset=utf-8' } }
    } finally {
      calendarPlaces.giveBack(keyId)
    }
  },
}
