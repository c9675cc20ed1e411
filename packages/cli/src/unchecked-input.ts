import type { ScheduleInput } from '@carillon/api'

/**
 * What somebody wrote, as what it is meant to be. The one cast of its kind: a file is sent as it is, for the service checks
 * it and names each field at fault, and a check here would be a second source of what a schedule is.
 */
export function uncheckedInput(written: object): ScheduleInput {
  return written as ScheduleInput
}
