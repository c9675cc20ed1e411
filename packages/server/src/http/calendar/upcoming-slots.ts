import { CarillonError, type Caller, type Schedule, type Scheduler, type ScheduleSlot } from '@carillon/core'

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

interface Span {
  readonly from: number
  readonly to: number
}

const SLOTS_MAX = 2000
const SLOTS_PER_SCHEDULE = 100
const SCHEDULES_MAX = 10_000
const PAGE = 200
const AT_ONCE = 8

/** The earliest slots of a project's active schedules within a span. */
export async function upcomingSlots(scheduler: Scheduler, caller: Caller, span: Span): Promise<Upcoming> {
  const { schedules, isCut } = await activeSchedules(scheduler, caller)
  const within = schedules.filter(({ nextSlotAt }) => nextSlotAt !== null && nextSlotAt < span.to)
  const found: UpcomingSlot[] = []
  let isMore = isCut
  let { to } = span
  // Those with the earliest next slot first: once there are enough, whoever comes due later has nothing to add.
  const queue = within.toSorted((a, b) => (a.nextSlotAt ?? 0) - (b.nextSlotAt ?? 0))
  for (let at = 0; at < queue.length; at += AT_ONCE) {
    const batch = queue.slice(at, at + AT_ONCE)
    if ((batch[0]?.nextSlotAt ?? 0) > to) return { slots: found, isCut: true }
    const slots = await Promise.all(batch.map((schedule) => slotsOf(scheduler, caller, schedule, { ...span, to })))
    isMore ||= slots.some(({ length }) => length > SLOTS_PER_SCHEDULE)
    found.push(...slots.flatMap((some) => some.slice(0, SLOTS_PER_SCHEDULE)))
    found.sort((a, b) => a.scheduledFor - b.scheduledFor)
    if (found.length <= SLOTS_MAX) continue
    isMore = true
    found.length = SLOTS_MAX
    to = (found.at(-1)?.scheduledFor ?? to) + 1
  }
  return { slots: found, isCut: isMore }
}

async function activeSchedules(
  scheduler: Scheduler,
  caller: Caller,
): Promise<{ schedules: Schedule[]; isCut: boolean }> {
  const schedules: Schedule[] = []
  for (;;) {
    const before = schedules.at(-1)?.id
    const page = await scheduler.list(caller, {
      state: 'active',
      limit: PAGE,
      ...(before === undefined ? {} : { before }),
    })
    schedules.push(...page)
    if (page.length < PAGE) return { schedules, isCut: false }
    if (schedules.length >= SCHEDULES_MAX) return { schedules, isCut: true }
  }
}

/** One more than is shown, to know whether there is more. */
async function slotsOf(scheduler: Scheduler, caller: Caller, schedule: Schedule, span: Span): Promise<UpcomingSlot[]> {
  try {
    const slots = await scheduler.slots(caller, schedule.id, { ...span, limit: SLOTS_PER_SCHEDULE + 1 })
    return slots.map((slot) => ({ ...slot, schedule }))
  } catch (error) {
    // Deleted meanwhile, or too sparse to be followed: the others are shown all the same.
    if (error instanceof CarillonError) return []
    throw error
  }
}
