import { DAY_MS, foundText, RETENTION_DAYS } from '@carillon/api'

import { CarillonError } from '../kernel/errors.ts'

/**
 * For how long the ledger keeps its lines, in milliseconds. Scheduler and worker must be given the same number of days.
 * @param days @default `RETENTION_DAYS.default`
 * @throws CarillonError `retention_too_short` outside of `RETENTION_DAYS`
 */
export function checkedRetentionMs(days: number = RETENTION_DAYS.default): number {
  if (days >= RETENTION_DAYS.min && days <= RETENTION_DAYS.max) return days * DAY_MS
  const message = `expected a number from ${RETENTION_DAYS.min} to ${RETENTION_DAYS.max}, got ${foundText(days)}`
  const problems = [{ path: 'retentionDays', message }]
  throw new CarillonError('retention_too_short', `retentionDays: ${message}`, { problems })
}
