import { DAY } from './zone.ts'

export interface Frequency {
  readonly frequency: 'weekly' | 'biweekly' | 'monthly'
  /** 0 is Sunday. */
  readonly dayOfWeek: number
  /** Milliseconds since midnight. */
  readonly time: number
  /** Midnight of the day that a biweekly cadence counts from. */
  readonly anchor: number
}

/** The wall times in `[from, to)`, found by testing each day. */
export function frequencyWalls({ frequency, dayOfWeek, time, anchor }: Frequency, from: number, to: number): number[] {
  const walls: number[] = []
  for (let day = Math.floor(from / DAY) * DAY; day < to; day += DAY) {
    const date = new Date(day)
    if (date.getUTCDay() !== dayOfWeek) continue
    if (frequency === 'biweekly' && ((day - anchor) / DAY) % 14 !== 0) continue
    if (frequency === 'monthly' && date.getUTCDate() > 7) continue
    if (day + time >= from && day + time < to) walls.push(day + time)
  }
  return walls
}
