import type { ScheduleInput } from '@carillon/api'

/** Runs on workdays at 09:00 in Madrid. */
export const DIGEST = {
  name: 'Morning digest',
  cadence: { kind: 'cron', expression: '0 9 * * 1-5', timezone: 'Europe/Madrid' },
  target: { kind: 'http', url: 'http://127.0.0.1:9000/digest', payload: { list: 'a' } },
} satisfies ScheduleInput

export const UNKNOWN_ID = '01890000-0000-7000-8000-000000000000'
