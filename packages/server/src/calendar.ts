import { PAGE_SIZE } from '@carillon/api'
import {
  CarillonError,
  describeCadence,
  slotsOf,
  type Caller,
  type Clock,
  type Schedule,
  type Scheduler,
  type ScheduleSlot,
} from '@carillon/core'
import ical, { ICalEventStatus, ICalEventTransparency } from 'ical-generator'

/** From one instant to another, which is excluded, in epoch milliseconds. */
interface Span {
  readonly from: number
  readonly to: number
}

interface UpcomingSlot extends ScheduleSlot {
  readonly schedule: Schedule
}

interface Upcoming {
  /** The earliest first. */
  readonly slots: readonly UpcomingSlot[]
  /** True if some slots are left out. */
  readonly isCut: boolean
}

interface Earliest {
  /** Ordered by their next slot. */
  readonly schedules: readonly Schedule[]
  /** No slot at or after this instant can be among the earliest. */
  readonly to: number
  /** True if schedules with slots within the span are left out. */
  readonly isCut: boolean
}

interface CalendarDeps {
  readonly scheduler: Pick<Scheduler, 'list'>
  readonly clock: Clock
}

const DAYS = 30
const DAY_MS = 86_400_000
const MINUTE_MS = 60_000
const SLOTS_MAX = 2000
const SLOTS_PER_SCHEDULE = 100
const SCHEDULES_MAX = 10_000
/** Schedules whose slots are computed between two looks at the clock. */
const BATCH = 5
/** How long slots are computed before other requests get the event loop. */
const TURN_MS = 10

/**
 * The slots of a project's active schedules in the next 30 days, as iCalendar. It holds no payload, URL or header of a target,
 * because calendars are shared widely.
 * @param now epoch milliseconds
 */
export async function renderCalendar(deps: CalendarDeps, caller: Caller, now: number): Promise<string> {
  const { slots, isCut } = await upcomingSlots(deps, caller, { from: now, to: now + DAYS * DAY_MS })
  const stamp = new Date(now)
  const span = `Slots of the next ${DAYS} days.`
  const calendar = ical({
    name: `Carillon: ${caller.projectId}`,
    description: isCut ? `${span} There are more than a calendar can hold: only the earliest are shown.` : span,
    prodId: { company: 'carillon', product: 'carillon', language: 'EN' },
    events: slots.map((slot) => ({ ...toEvent(slot), stamp })),
  })
  return `${calendar.toString()}\r\n`
}

function toEvent({ schedule, scheduledFor, isSkipped }: UpcomingSlot) {
  return {
    id: `${schedule.id}-${scheduledFor}@carillon`,
    start: new Date(scheduledFor),
    end: new Date(scheduledFor + MINUTE_MS),
    summary: schedule.name,
    description: `${describeCadence(schedule.cadence)}. Target: ${schedule.target.kind}.`,
    status: isSkipped ? ICalEventStatus.CANCELLED : ICalEventStatus.CONFIRMED,
    // A run of a machine must not mark its subscriber as busy.
    transparency: ICalEventTransparency.TRANSPARENT,
  }
}

/** The earliest slots of a project's active schedules within a span. */
async function upcomingSlots({ scheduler, clock }: CalendarDeps, caller: Caller, span: Span): Promise<Upcoming> {
  const { from } = span
  const earliest = await earliestSchedules(scheduler, caller, span, SLOTS_MAX)
  const { schedules } = earliest
  const found: UpcomingSlot[] = []
  let { to, isCut } = earliest
  let turnBegan = clock.monotonicMs()
  // In the order of their next slots. Once enough slots are found, a schedule whose next slot is later adds nothing.
  for (let at = 0; at < schedules.length; at += BATCH) {
    const batch = schedules.slice(at, at + BATCH)
    if ((batch[0]?.nextSlotAt ?? 0) >= to) return { slots: found, isCut: true }
    const slots = batch.map((schedule) => readableSlots(schedule, { from, to }))
    isCut ||= slots.some(({ length }) => length > SLOTS_PER_SCHEDULE)
    found.push(...slots.flatMap((some) => some.slice(0, SLOTS_PER_SCHEDULE)))
    found.sort((a, b) => a.scheduledFor - b.scheduledFor)
    if (found.length > SLOTS_MAX) {
      isCut = true
      found.length = SLOTS_MAX
      to = (found.at(-1)?.scheduledFor ?? to) + 1
    }
    if (clock.monotonicMs() - turnBegan < TURN_MS) continue
    await clock.sleep(0)
    turnBegan = clock.monotonicMs()
  }
  return { slots: found, isCut }
}

/** Reads one slot more than is shown, to know whether there are more. */
function readableSlots(schedule: Schedule, span: Span): UpcomingSlot[] {
  try {
    return slotsOf(schedule, { ...span, limit: SLOTS_PER_SCHEDULE + 1 }).map((slot) => ({ ...slot, schedule }))
  } catch (error) {
    // The cadence is too sparse to compute, or of another version. The other schedules are still shown.
    if (error instanceof CarillonError) return []
    throw error
  }
}

/**
 * The active schedules that can have one of the `count` earliest slots of a span. Each schedule has at least its next slot, so
 * of more than `count` schedules those with the latest next slots cannot contribute.
 */
export async function earliestSchedules(
  scheduler: Pick<Scheduler, 'list'>,
  caller: Caller,
  span: Span,
  count: number,
): Promise<Earliest> {
  let earliest: Earliest = { schedules: [], to: span.to, isCut: false }
  let before: string | undefined
  for (let read = 0; read < SCHEDULES_MAX; read += PAGE_SIZE.max) {
    const options = { state: 'active', limit: PAGE_SIZE.max, ...(before === undefined ? {} : { before }) } as const
    const page = await scheduler.list(caller, options)
    earliest = withPage(earliest, page, span.from, count)
    before = page.at(-1)?.id
    if (page.length < PAGE_SIZE.max) return earliest
  }
  return { ...earliest, isCut: true }
}

function withPage(earliest: Earliest, page: readonly Schedule[], from: number, count: number): Earliest {
  const { to, isCut } = earliest
  const schedules = [...earliest.schedules, ...page.filter((schedule) => nextOf(schedule) < to).map(withoutPayload)]
  schedules.sort((a, b) => nextOf(a) - nextOf(b))
  // The next slot of an overdue schedule lies before the span, and perhaps none within, so it does not count.
  const overdue = schedules.filter((schedule) => nextOf(schedule) < from).length
  const kept = schedules.slice(0, overdue + count)
  const last = kept.at(-1)
  if (last === undefined || kept.length === schedules.length) return { schedules, to, isCut }
  return { schedules: kept, to: nextOf(last) + 1, isCut: true }
}

/** An active schedule always has a next slot. */
function nextOf({ nextSlotAt }: Schedule): number {
  return nextSlotAt ?? Infinity
}

/** Up to a mebibyte of payload per schedule need not stay in memory. */
function withoutPayload(schedule: Schedule): Schedule {
  return { ...schedule, target: { kind: schedule.target.kind } }
}
