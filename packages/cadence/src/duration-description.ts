import type { Duration } from './duration-text.ts'
import { HOUR_MS, MINUTE_MS, SECOND_MS } from './wall.ts'
import { joinWords } from './word-list.ts'

/** `Every 15 minutes`, `Every month`, `Every 1 day and 12 hours`. */
export function describeDuration({ months, days, timeMs }: Duration): string {
  const isWeeks = days > 0 && days % 7 === 0
  const amounts: [number, string][] = [
    [Math.floor(months / 12), 'year'],
    [months % 12, 'month'],
    [isWeeks ? days / 7 : 0, 'week'],
    [isWeeks ? 0 : days, 'day'],
    [Math.floor(timeMs / HOUR_MS), 'hour'],
    [Math.floor((timeMs % HOUR_MS) / MINUTE_MS), 'minute'],
    [(timeMs % MINUTE_MS) / SECOND_MS, 'second'],
  ]
  const present = amounts.filter(([amount]) => amount > 0)
  const [first] = present
  if (present.length === 1 && first?.[0] === 1) return `Every ${first[1]}`
  return `Every ${joinWords(present.map(([amount, unit]) => `${amount} ${unit}${amount === 1 ? '' : 's'}`))}`
}
