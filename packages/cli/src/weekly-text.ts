import type { CadenceInput } from '@carillon/api'
import { InvalidArgumentError } from 'commander'

const DAYS = ['sun', 'mon', 'tue', 'wed', 'thu', 'fri', 'sat']

type FrequencyCadence = Extract<CadenceInput, { kind: 'frequency' }>
export type DayAndTime = Pick<FrequencyCadence, 'dayOfWeek' | 'timeOfDay'>

/** `mon@09:00`: a day of the week and a time of day. */
export function dayAndTime(text: string): DayAndTime {
  const [, day = '', time] = /^([a-z]{3})[a-z]*@(\d\d:\d\d)$/i.exec(text) ?? []
  const dayOfWeek = DAYS.indexOf(day.toLowerCase())
  if (time === undefined || dayOfWeek === -1) {
    throw new InvalidArgumentError('expected a day and a time such as mon@09:00')
  }
  return { dayOfWeek, timeOfDay: time }
}
