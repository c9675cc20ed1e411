import { expectedText, isStorable, LAST_INSTANT_MS, STORED_SCHEDULE_STATES, type ScheduleState } from '@carillon/api'

import { invalidInput } from './errors.ts'
import { isUuid } from './ids.ts'

/*
 * Checks of a caller's arguments. A wrong argument throws a CarillonError that names it, so it never reaches Postgres.
 * An absent argument becomes null.
 */

export function checkedCount(value: number, max: number, path: string): number {
  if (Number.isInteger(value) && value >= 1 && value <= max) return value
  throw refused(path, `a whole number from 1 to ${max}`, value)
}

export function checkedId(value: string | undefined, path: string): string | null {
  if (value === undefined) return null
  if (isUuid(value)) return value
  throw refused(path, 'an id of a schedule', value)
}

export function checkedState(value: ScheduleState | undefined, path: string): ScheduleState | null {
  if (value === undefined) return null
  if (STORED_SCHEDULE_STATES.includes(value)) return value
  throw refused(path, `one of ${STORED_SCHEDULE_STATES.join(', ')}`, value)
}

export function checkedText(value: string | undefined, path: string): string | null {
  if (value === undefined) return null
  if (typeof value === 'string' && isStorable(value)) return value
  throw refused(path, 'a text without U+0000', value)
}

export function checkedInstant(value: number | undefined, path: string): number | null {
  if (value === undefined) return null
  if (Number.isInteger(value) && value >= 0 && value <= LAST_INSTANT_MS) return value
  throw refused(path, 'an instant in epoch milliseconds', value)
}

function refused(path: string, expected: string, value: unknown): Error {
  return invalidInput([{ path, message: expectedText(expected, value) }])
}
