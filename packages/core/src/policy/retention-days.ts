import { foundText } from '@carillon/api'

import { CarillonError } from '../kernel/errors.ts'

const DAY_MS = 86_400_000
const RETENTION_DAYS_DEFAULT = 90
// A week: after a long weekend without workers, BEGIN must still give every slot its line (I6).
const RETENTION_DAYS_MIN = 7

/**
 * For how long the ledger keeps its lines, in milliseconds. Scheduler and worker must be given the same number of days.
 * @param days @default 90
 * @throws CarillonError `retention_too_short` under 7
 */
export function checkedRetentionMs(days: number = RETENTION_DAYS_DEFAULT): number {
  if (Number.isFinite(days) && days >= RETENTION_DAYS_MIN) return days * DAY_MS
  const message = `expected a number of at least ${RETENTION_DAYS_MIN}, got ${foundText(days)}`
  const problems = [{ path: 'retentionDays', message }]
  throw new CarillonError('retention_too_short', `retentionDays: ${message}`, { problems })
}
