import { CarillonError, invalidInput } from '../errors.ts'
import type { Schedule, ScheduleState } from '../schedule.ts'
import { SQLSTATE, sqlStateOf } from '../store/sqlstate.ts'

/** The key of the database decides: a grant of another project is none, and one may be deleted at any time. */
export async function refusingUnknownGrant(write: () => Promise<void>): Promise<void> {
  try {
    await write()
  } catch (error) {
    if (sqlStateOf(error) !== SQLSTATE.foreignKeyViolation) throw error
    throw unknownGrant()
  }
}

export function unknownGrant(): CarillonError {
  return invalidInput([{ path: 'grantId', message: 'expected a grant of this project, got one that is not' }])
}

export function noSlotAhead(): CarillonError {
  return invalidInput([{ path: 'cadence', message: 'expected a slot ahead, got none' }])
}

export function scheduleNotFound(id: string): CarillonError {
  return new CarillonError('schedule_not_found', `no schedule ${id.slice(0, 100)}`)
}

export function runNotFound(id: string): CarillonError {
  return new CarillonError('run_not_found', `no run ${id.slice(0, 100)}`)
}

export function stateConflict({ state }: Schedule, expected: ScheduleState): CarillonError {
  return new CarillonError('state_conflict', `expected a schedule that is ${expected}, got one that is ${state}`)
}
