import { INSTALLATION_SUBJECT, type Schedule, type ScheduleInput } from '@carillon/api'

/** A schedule without ids and counters, which belong to one installation: `export` writes it and `import` reads it. */
export type PortableSchedule = ScheduleInput & {
  readonly paused?: { readonly reason: string }
  readonly skippedSlots?: readonly string[]
}

export function toPortable(schedule: Schedule): PortableSchedule {
  const { name, cadence, target, policy, ownerSubject, state, pausedReason, skippedSlots } = schedule
  return {
    name,
    cadence,
    target,
    policy,
    // The server does not accept the installation as an owner. An entry without an owner belongs to the subject that imports it.
    ...(ownerSubject === INSTALLATION_SUBJECT ? {} : { ownerSubject }),
    ...(state === 'paused' ? { paused: { reason: pausedReason ?? '' } } : {}),
    ...(skippedSlots.length === 0 ? {} : { skippedSlots }),
  }
}
