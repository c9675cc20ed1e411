import { CronMatcher } from '../oracle/cron-matcher.ts'
import { defaultPolicy, resolve, type Policy } from '../oracle/dst.ts'
import { frequencyWalls } from '../oracle/frequency.ts'
import { addTimes, NOTHING, type Duration } from '../oracle/interval.ts'
import { expand, readRule } from '../oracle/rrule-matcher.ts'
import { DAY, HOUR, MINUTE, wall, zone, type Zone } from '../oracle/zone.ts'

export interface Pattern {
  readonly input: Record<string, unknown>
  /** How far before and after a DST change the vectors reach, in milliseconds. */
  readonly reach: number
  /** True if the pattern names local times, so that the policy matters. */
  readonly isLocal: boolean
  /** The default policy of the pattern, as the README defines it. */
  readonly byDefault: Policy
  readonly slots: (place: Zone, policy: Policy, from: number, to: number) => number[]
}

/** This start is before the oldest window, and is not a transition in any of the zones. */
const START = '2011-12-01T02:30:00'
const END = Date.UTC(2036, 0, 8)
const A_DAY = 26 * HOUR

export const PATTERNS: readonly Pattern[] = [
  cron('30 2 * * *', A_DAY),
  cron('30 1 * * *', A_DAY),
  cron('15 0 * * *', A_DAY),
  cron('0 3 * * *', A_DAY),
  cron('0 */2 * * *', 4 * HOUR),
  cron('0 * * * *', 4 * HOUR),
  cron('*/15 * * * *', 75 * MINUTE),
  cron('45 1-3/2 L,8-14,*/7 * SUN', A_DAY),
  rrule('FREQ=DAILY;BYHOUR=2;BYMINUTE=10,50', A_DAY),
  rrule('FREQ=WEEKLY;BYDAY=TH,FR,SA,SU;BYHOUR=0,2;BYMINUTE=45', A_DAY),
  rrule('FREQ=MINUTELY;INTERVAL=90', 4 * HOUR),
  calendar('P1D', { ...NOTHING, days: 1 }, A_DAY),
  elapsed('PT6H', 6 * HOUR, 13 * HOUR),
  weekly('02:30', 8 * DAY),
]

function cron(expression: string, reach: number): Pattern {
  const matchers = new Map<string, CronMatcher>()
  return {
    input: { kind: 'cron', expression },
    reach,
    isLocal: true,
    byDefault: new CronMatcher(expression, zone('UTC')).policy,
    slots: (place, policy, from, to) => {
      const key = `${place.name} ${policy.gap} ${policy.fold}`
      const matcher = matchers.get(key) ?? new CronMatcher(expression, place, policy)
      matchers.set(key, matcher)
      return matcher.slots(from, to)
    },
  }
}

function rrule(rule: string, reach: number): Pattern {
  const walls = () => expand(readRule(rule), wall(START), END, Infinity, Infinity).walls
  return fromWalls({ kind: 'rrule', rule, start: START }, reach, walls)
}

function calendar(every: string, duration: Duration, reach: number): Pattern {
  const count = Math.ceil((END - wall(START)) / DAY)
  const walls = () => Array.from({ length: count }, (_, times) => addTimes(wall(START), duration, times))
  return fromWalls({ kind: 'interval', every, startAt: START }, reach, walls)
}

function weekly(timeOfDay: string, reach: number): Pattern {
  const time = wall(`1970-01-01T${timeOfDay}:00`)
  const walls = () => frequencyWalls({ frequency: 'weekly', dayOfWeek: 0, time, anchor: 0 }, wall(START), END)
  return fromWalls({ kind: 'frequency', frequency: 'weekly', dayOfWeek: 0, timeOfDay }, reach, walls)
}

function elapsed(every: string, step: number, reach: number): Pattern {
  const start = wall(START)
  return {
    input: { kind: 'interval', every, startAt: `${START}Z` },
    reach,
    isLocal: false,
    byDefault: { gap: 'shift', fold: 'first' },
    slots: (_place, _policy, from, to) => {
      const found: number[] = []
      for (let slot = start; slot < to; slot += step) if (slot >= from) found.push(slot)
      return found
    },
  }
}

/** The wall times are the same in every zone. The policy is applied only to those near the window. */
function fromWalls(input: Record<string, unknown>, reach: number, expandWalls: () => number[]): Pattern {
  const walls = expandWalls()
  return {
    input,
    reach,
    isLocal: true,
    byDefault: defaultPolicy(walls),
    slots: (place, policy, from, to) => {
      const near = walls.filter((at) => at >= from - 2 * DAY && at < to + 2 * DAY)
      return resolve(near, place, policy).filter((slot) => slot >= from && slot < to)
    },
  }
}
