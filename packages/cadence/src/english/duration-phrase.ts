import type { Duration } from '../duration-text.ts'
import { HOUR_MS, MINUTE_MS, SECOND_MS } from '../wall.ts'
import { countOf, joinWords } from './words.ts'

/** `minute`, `15 minutes`, `1 day and 12 hours`: what may follow "every". */
export function describeDuration({ months, days, timeMs }: Duration): string {
  const isWeeks = days > 0 && days % 7 === 0
  const amounts: readonly [number, string][] = [
    [Math.floor(months / 12), 'year'],
    [months % 12, 'month'],
    [isWeeks ? days / 7 : 0, 'week'],
    [isWeeks ? 0 : days, 'day'],
    [Math.floor(timeMs / HOUR_MS), 'hour'],
    [Math.floor((timeMs % HOUR_MS) / MINUTE_MS), 'minute'],
    [(timeMs % MINUTE_MS) / SECOND_MS, 'second'],
  ]
  const present = amounts.filter(([amount]) => amount > 0)
  const [only] = present
  if (only !== undefined && present.length === 1 && only[0] === 1) return only[1]
  return joinWords(present.map(([amount, unit]) => countOf(amount, unit)))
}
