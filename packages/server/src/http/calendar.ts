import { DAY_MS, PAGE_SIZE } from '@carillon/api'
import {
  CarillonError,
  describeCadence,
  EventLoopYield,
  slotsOf,
  type Caller,
  type Clock,
  type Schedule,
  type Scheduler,
  type ScheduleSlot,
} from '@carillon/core'
import ical, { ICalEventStatus, ICalEventTransparency } from 'ical-generator'

/** A span of time in epoch milliseconds. It includes `from` and excludes `to`. */
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
const MINUTE_MS = 60_000
const SLOTS_MAX = 2000
const SLOTS_PER_SCHEDULE = 100
const SCHEDULES_MAX = 10_000
/** How many schedules have their slots computed before the found slots are sorted and the clock is read again. */
const BATCH = 5

/**
 * Renders the slots of a project's active schedules in the next 30 days as iCalendar. The calendar holds no payload, URL or
 * header of a target, because calendars are shared widely.
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
    // A run must not show the person who subscribes to the calendar as busy.
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
  const eventLoop = new EventLoopYield(clock)
  // Schedules come in the order of their next slots. Once SLOTS_MAX slots are found, a schedule whose next slot is later adds none.
  for (let at = 0; at < schedules.length; at += BATCH) {
    await eventLoop.next()
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
  }
  return { slots: found, isCut }
}

/** Computes one slot more than the calendar shows, to tell whether slots are left out. */
function readableSlots(schedule: Schedule, span: Span): UpcomingSlot[] {
  try {
    return slotsOf(schedule, { ...span, limit: SLOTS_PER_SCHEDULE + 1 }).map((slot) => ({ ...slot, schedule }))
  } catch (error) {
    // The slots are too sparse to be found, or this version cannot read the cadence. The other schedules are still shown.
    if (error instanceof CarillonError) return []
    throw error
  }
}

/**
 * Finds the active schedules that can have one of the `count` earliest slots of a span. Each schedule has at least its next slot,
 * so if there are more than `count` schedules, only the `count` whose next slots come first can contribute.
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
  // The next slot of an overdue schedule lies before the span, which may hold none of its slots, so it does not count toward `count`.
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

/** Drops the payload of the target, which may be a mebibyte per schedule, to save memory. */
function withoutPayload(schedule: Schedule): Schedule {
  return { ...schedule, target: { kind: schedule.target.kind } }
}
