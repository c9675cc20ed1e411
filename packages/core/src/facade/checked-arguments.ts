import { invalidInput } from '../errors.ts'
import { foundText } from '../policy/found-text.ts'
import type { ScheduleState } from '../schedule.ts'
import { isUuid } from '../uuid.ts'
import { isStorable } from './stored-text.ts'

const STATES: readonly ScheduleState[] = ['active', 'paused', 'completed', 'deleted']
/** How many items a page holds unless told, and at most. */
export const PAGE_DEFAULT = 50
export const PAGE_MAX = 200
/** The years that cadences know. */
const LAST_INSTANT = Date.parse('9999-12-31T23:59:59.999Z')

/*
 * What is asked for is checked as what is written is: whoever calls gets a CarillonError that names the argument, never
 * one of the database. Absent is null.
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
  if (STATES.includes(value)) return value
  throw refused(path, `one of ${STATES.join(', ')}`, value)
}

export function checkedText(value: string | undefined, path: string): string | null {
  if (value === undefined) return null
  if (typeof value === 'string' && isStorable(value)) return value
  throw refused(path, 'a text without U+0000', value)
}

export function checkedInstant(value: number | undefined, path: string): number | null {
  if (value === undefined) return null
  if (Number.isInteger(value) && value >= 0 && value <= LAST_INSTANT) return value
  throw refused(path, 'an instant in epoch milliseconds', value)
}

function refused(path: string, expected: string, value: unknown): Error {
  return invalidInput([{ path, message: `expected ${expected}, got ${foundText(value)}` }])
}
