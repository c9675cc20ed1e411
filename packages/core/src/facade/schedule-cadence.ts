import { parse, SearchLimitError, type Cadence, type CadenceSpec } from '@carillon/cadence'

import { invalidInput } from '../errors.ts'
import type { Schedule } from '../schedule.ts'

/** @throws CarillonError if the cadence can no longer be read */
export function cadenceOf(schedule: Schedule): Cadence {
  const result = parseStored(schedule.cadence)
  if (!result.ok) {
    throw invalidInput(result.problems.map(({ field, message }) => ({ path: `cadence.${field}`, message })))
  }
  return result.cadence
}

/** A stored cadence in plain English. What cannot be read any more is said to be so: a list must not fail for one of its rows. */
export function describeCadence(spec: CadenceSpec): string {
  const result = parseStored(spec)
  return result.ok ? result.cadence.describe() : 'A cadence that this version cannot read'
}

/**
 * Searches a cadence, and refuses what cannot be found: a rule may be accepted and thin out years later.
 * @param path the argument to blame
 */
export function findingSlots<Result>(path: string, search: () => Result): Result {
  try {
    return search()
  } catch (error) {
    if (!(error instanceof SearchLimitError)) throw error
    const message = 'expected a cadence whose next slot can be found, got one that is too sparse from there on'
    throw invalidInput([{ path, message: `${message}: simplify it, or ask for an earlier time` }])
  }
}

/** What was accepted once is not refused for being too frequent now. */
function parseStored(spec: CadenceSpec): ReturnType<typeof parse> {
  return parse(spec, { minimumSeconds: 0 })
}
