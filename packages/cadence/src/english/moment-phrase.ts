import type { Moment } from '../moment.ts'
import { wallOf } from '../moment.ts'
import { DAY_MS, dateOf, dayOf, modulo } from '../wall.ts'
import type { Wall } from '../wall.ts'
import type { Zone } from '../zone.ts'
import { formatTime } from './time-phrase.ts'
import { MONTHS } from './words.ts'

/** `24 December 2026`. */
export function describeDate(wall: Wall): string {
  const { year, month, day } = dateOf(dayOf(wall))
  return `${day} ${MONTHS[month - 1]} ${year}`
}

/** `24 December 2026 at 18:00`, as the clocks of the zone show it. */
export function describeMoment(moment: Moment, zone: Zone): string {
  const wall = wallOf(moment, zone)
  return `${describeDate(wall)} at ${formatTime(modulo(wall, DAY_MS))}`
}
