import { describeCadence } from '@carillon/core'
import ical, { ICalEventStatus, ICalEventTransparency } from 'ical-generator'

import type { Upcoming, UpcomingSlot } from './upcoming-slots.ts'

interface CalendarInput extends Upcoming {
  readonly project: string
  readonly days: number
  /** When the calendar was made, in epoch milliseconds. */
  readonly stampedAt: number
}

const MINUTE_MS = 60_000

/** Slots as iCalendar. No payload, URL or header of a target: a calendar is shown to many. */
export function renderCalendar({ slots, isCut, project, days, stampedAt }: CalendarInput): string {
  const stamp = new Date(stampedAt)
  const calendar = ical({
    name: `Carillon: ${project}`,
    description: descriptionOf(days, isCut),
    prodId: { company: 'carillon', product: 'carillon', language: 'EN' },
    events: slots.map((slot) => ({ ...eventOf(slot), stamp })),
  })
  return `${calendar.toString()}\r\n`
}

function descriptionOf(days: number, isCut: boolean): string {
  const span = `Slots of the next ${days} days.`
  return isCut ? `${span} There are more than a calendar can hold: only the earliest are shown.` : span
}

function eventOf({ schedule, scheduledFor, isSkipped }: UpcomingSlot) {
  return {
    id: `${schedule.id}-${scheduledFor}@carillon`,
    start: new Date(scheduledFor),
    end: new Date(scheduledFor + MINUTE_MS),
    summary: schedule.name,
    description: `${describeCadence(schedule.cadence)}. Target: ${schedule.target.kind}.`,
    status: isSkipped ? ICalEventStatus.CANCELLED : ICalEventStatus.CONFIRMED,
    // Nobody is busy because a machine is.
    transparency: ICalEventTransparency.TRANSPARENT,
  }
}
