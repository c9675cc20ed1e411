import {
  CarillonError,
  slotsOf,
  type Caller,
  type Clock,
  type Schedule,
  type Scheduler,
  type ScheduleSlot,
} from '@carillon/core'

import { earliestSchedules, type Span } from './earliest-schedules.ts'

/** A slot of some schedule. */
export interface UpcomingSlot extends ScheduleSlot {
  readonly schedule: Schedule
}

export interface Upcoming {
  /** The earliest first. */
  readonly slots: readonly UpcomingSlot[]
  /** Whether there would be more. */
  readonly isCut: boolean
}

interface UpcomingDeps {
  readonly scheduler: Pick<Scheduler, 'list'>
  readonly clock: Clock
}

const SLOTS_MAX = 2000
const SLOTS_PER_SCHEDULE = 100
const AT_ONCE = 5
/** For how long slots are looked for before other requests get their turn. */
const TURN_MS = 10

/** The earliest slots of a project's active schedules within a span. */
export async function upcomingSlots(
  { scheduler, clock }: UpcomingDeps,
  caller: Caller,
  { from, to: end }: Span,
): Promise<Upcoming> {
  const { schedules, to: bound, isCut } = await earliestSchedules(scheduler, caller, { from, to: end }, SLOTS_MAX)
  const found: UpcomingSlot[] = []
  let [isMore, to, turnBegan] = [isCut, bound, clock.monotonicMs()]
  // Those with the earliest next slot first: once there are enough, whoever comes due later has nothing to add.
  for (let at = 0; at < schedules.length; at += AT_ONCE) {
    const batch = schedules.slice(at, at + AT_ONCE)
    if ((batch[0]?.nextSlotAt ?? 0) >= to) return { slots: found, isCut: true }
    const slots = batch.map((schedule) => readableSlots(schedule, { from, to }))
    isMore ||= slots.some(({ length }) => length > SLOTS_PER_SCHEDULE)
    found.push(...slots.flatMap((some) => some.slice(0, SLOTS_PER_SCHEDULE)))
    found.sort((a, b) => a.scheduledFor - b.scheduledFor)
    if (found.length > SLOTS_MAX) {
      isMore = true
      found.length = SLOTS_MAX
      to = (found.at(-1)?.scheduledFor ?? to) + 1
    }
    if (clock.monotonicMs() - turnBegan < TURN_MS) continue
    await clock.sleep(0)
    turnBegan = clock.monotonicMs()
  }
  return { slots: found, isCut: isMore }
}

/** One more than is shown, to know whether there is more. */
function readableSlots(schedule: Schedule, span: Span): UpcomingSlot[] {
  try {
    return slotsOf(schedule, { ...span, limit: SLOTS_PER_SCHEDULE + 1 }).map((slot) => ({ ...slot, schedule }))
  } catch (error) {
    // Too sparse to be followed, or of another version: the others are shown all the same.
    if (error instanceof CarillonError) return []
    throw error
  }
}
