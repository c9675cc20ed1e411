import type { Schedule, ScheduleInput } from '@carillon/api'

/** A schedule without what belongs to one installation: what `export` writes and `import` reads. */
export type PortableSchedule = ScheduleInput & {
  readonly paused?: { readonly reason: string }
  readonly skippedSlots?: readonly string[]
}

const INSTALLATION_SUBJECT = 'service:installation'

export function toPortable(schedule: Schedule): PortableSchedule {
  const { name, cadence, target, policy, ownerSubject, state, pausedReason, skippedSlots } = schedule
  return {
    name,
    cadence,
    target,
    policy,
    // Nobody can be given the name of an installation; what is imported is then the importer's.
    ...(ownerSubject === INSTALLATION_SUBJECT ? {} : { ownerSubject }),
    ...(state === 'paused' ? { paused: { reason: pausedReason ?? '' } } : {}),
    ...(skippedSlots.length === 0 ? {} : { skippedSlots }),
  }
}

/** The same text for the same content, in whatever order its fields stand. */
export function canonicalJson(value: unknown): string {
  return JSON.stringify(value, (_key, part: unknown) =>
    typeof part === 'object' && part !== null && !Array.isArray(part)
      ? Object.fromEntries(Object.entries(part).toSorted(([a], [b]) => (a < b ? -1 : 1)))
      : part,
  )
}
