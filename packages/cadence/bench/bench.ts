/**
 * Measures `next` and `parse` beside well-known libraries. Run: `npm run bench:cadence`.
 *
 * Each line is the median of many short batches. Batches of this package and of the library alternate, so a busy machine
 * slows both. `next` asks a parsed cadence for the slot after a moving instant within one year; `parse + next` starts from
 * JSON each time. Every kind must keep the limits, except a rule that counts its slots (`maxRuns`, `COUNT`): it pays for
 * each slot counted. The lines below the table are the cost of a hostile rule, and of the first use of a zone,
 * which a process pays once per zone year. The bench does not measure memory, other engines or instants centuries away.
 */
import { Cron } from 'croner'
import { RRuleTemporal } from 'rrule-temporal'
import { Temporal } from 'temporal-polyfill'

import { parse } from '../src/index.ts'
import type { Cadence } from '../src/index.ts'
import { Zone } from '../src/time/zone.ts'

const NEXT_MAX_US = 50
const PARSE_NEXT_MAX_US = 250
const BATCHES = 60
const BATCH_MS = 4
const YEAR_START = Date.UTC(2026, 0, 1)
const DAY_MS = 86_400_000
const ZONE = 'America/New_York'

interface Case {
  readonly name: string
  readonly input: unknown
  /** True if `parse` counts its slots one by one, so that the limit does not apply. */
  readonly isCounted?: true
  readonly library?: Library
}

interface Library {
  readonly name: string
  readonly create: () => (after: Date) => unknown
}

const rrule = (lines: string): Library => ({
  name: 'rrule-temporal',
  create: () => {
    const rule = new RRuleTemporal({ rruleString: lines })
    return (after) => rule.next(after)
  },
})

const cron = (expression: string): Library => ({
  name: 'croner',
  create: () => {
    const pattern = new Cron(expression, { timezone: ZONE })
    return (after) => pattern.nextRun(after)
  },
})

const CASES: readonly Case[] = [
  {
    name: 'once',
    input: { kind: 'once', at: '2027-12-24T18:00:00', timezone: ZONE },
    library: {
      name: 'temporal-polyfill',
      create: () => {
        const at = Temporal.PlainDateTime.from('2027-12-24T18:00:00').toZonedDateTime(ZONE).epochMilliseconds
        return (after) => (at > after.getTime() ? at : null)
      },
    },
  },
  {
    name: 'cron, weekdays at 09:00',
    input: { kind: 'cron', expression: '0 9 * * 1-5', timezone: ZONE },
    library: cron('0 9 * * 1-5'),
  },
  {
    name: 'cron, every 15 minutes',
    input: { kind: 'cron', expression: '*/15 * * * *', timezone: ZONE },
    library: cron('*/15 * * * *'),
  },
  {
    name: 'cron, every minute',
    input: { kind: 'cron', expression: '* * * * *', timezone: ZONE },
    library: cron('* * * * *'),
  },
  {
    name: 'rrule, first Monday',
    input: { kind: 'rrule', rule: 'FREQ=MONTHLY;BYDAY=1MO', start: '2020-01-06T09:00:00', timezone: ZONE },
    library: rrule(`DTSTART;TZID=${ZONE}:20200106T090000\nRRULE:FREQ=MONTHLY;BYDAY=1MO`),
  },
  {
    name: 'rrule, last workday of the year',
    input: {
      kind: 'rrule',
      rule: 'FREQ=YEARLY;BYDAY=MO,TU,WE,TH,FR;BYSETPOS=-1',
      start: '2020-01-06T09:00:00',
      timezone: ZONE,
    },
    library: rrule(`DTSTART;TZID=${ZONE}:20200106T090000\nRRULE:FREQ=YEARLY;BYDAY=MO,TU,WE,TH,FR;BYSETPOS=-1`),
  },
  {
    name: 'interval, PT15M',
    input: { kind: 'interval', every: 'PT15M', startAt: '2020-01-01T00:00:00Z', timezone: ZONE },
  },
  {
    name: 'interval, P1M',
    input: { kind: 'interval', every: 'P1M', startAt: '2020-01-31T09:00:00', timezone: ZONE },
  },
  {
    name: 'frequency, biweekly',
    input: {
      kind: 'frequency',
      frequency: 'biweekly',
      dayOfWeek: 1,
      timeOfDay: '09:00',
      anchor: '2020-01-06',
      timezone: ZONE,
    },
    library: rrule(`DTSTART;TZID=${ZONE}:20200106T090000\nRRULE:FREQ=WEEKLY;INTERVAL=2;BYDAY=MO`),
  },
  {
    name: 'rrule, every minute',
    input: { kind: 'rrule', rule: 'FREQ=MINUTELY', start: '2020-01-06T09:00:00', timezone: ZONE },
    library: rrule(`DTSTART;TZID=${ZONE}:20200106T090000\nRRULE:FREQ=MINUTELY`),
  },
  {
    name: 'rrule, COUNT=10000 (counted)',
    input: { kind: 'rrule', rule: 'FREQ=DAILY;COUNT=10000', start: '2020-01-06T09:00:00', timezone: ZONE },
    isCounted: true,
  },
  {
    name: 'cron, maxRuns 1000 (counted)',
    input: { kind: 'cron', expression: '*/15 * * * *', timezone: ZONE, startAt: '2026-01-01T00:00:00Z', maxRuns: 1000 },
    isCounted: true,
  },
]

function parsed(input: unknown): Cadence {
  const result = parse(input)
  if (!result.ok) throw new Error(result.problems.map((problem) => problem.message).join('\n'))
  return result.cadence
}

/** Instants spread over a year, the same for all measured functions. */
function instantsOfAYear(): () => number {
  let day = 0
  return () => {
    day = (day + 17) % 365
    return YEAR_START + day * DAY_MS
  }
}

interface Task {
  readonly run: (after: number) => unknown
  readonly batches: number[]
}

/** Microseconds per call: the median batch of each function. Batches of the functions alternate. */
function measure(runs: readonly ((after: number) => unknown)[]): number[] {
  const tasks: Task[] = runs.map((run) => ({ run, batches: [] }))
  const nextInstant = instantsOfAYear()
  for (let batch = 0; batch < BATCHES; batch += 1) {
    for (const { run, batches } of tasks) {
      const start = performance.now()
      let calls = 0
      let elapsed = 0
      while (elapsed < BATCH_MS) {
        for (let call = 0; call < 16; call += 1) run(nextInstant())
        calls += 16
        elapsed = performance.now() - start
      }
      batches.push((elapsed * 1000) / calls)
    }
  }
  return tasks.map(({ batches }) => batches.toSorted((a, b) => a - b)[Math.floor(BATCHES / 2)] ?? Infinity)
}

function median(values: readonly number[]): number {
  return values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? Infinity
}

function millisecondsOf(run: () => unknown): number {
  const start = performance.now()
  run()
  return performance.now() - start
}

const HOSTILE = 'FREQ=SECONDLY;BYMONTH=2;BYMONTHDAY=30'

/** A rule without slots: `parse` rejects it, rrule-temporal stops at its own limit of iterations. */
function hostileLines(): string[] {
  const start = { kind: 'rrule', rule: HOSTILE, start: '2020-01-01T00:00:00' }
  const library = new RRuleTemporal({ rruleString: `DTSTART;TZID=UTC:20200101T000000\nRRULE:${HOSTILE}` })
  const giveUp = (): void => {
    try {
      library.next(new Date(YEAR_START))
    } catch {
      // rrule-temporal throws when it reaches its limit.
    }
  }
  const ours = median(Array.from({ length: 5 }, () => millisecondsOf(() => parse(start))))
  const theirs = median(Array.from({ length: 5 }, () => millisecondsOf(giveUp)))
  return [`${HOSTILE}: rejected in ${ours.toFixed(1)} ms, rrule-temporal gives up in ${theirs.toFixed(0)} ms`]
}

/** Zones that no measurement above has used, each read once. Half of them have no DST. */
const FRESH_ZONES = ['Europe/Rome', 'Asia/Tokyo', 'America/Chicago', 'Asia/Kolkata', 'Australia/Sydney', 'Asia/Dubai']

function zoneLine(): string {
  const ours = median(FRESH_ZONES.map((name) => millisecondsOf(() => new Zone(name).segmentAt(YEAR_START))))
  const theirs = FRESH_ZONES.map((name) => {
    const moment = Temporal.Instant.fromEpochMilliseconds(YEAR_START).toZonedDateTimeISO(name)
    return millisecondsOf(() => [moment.getTimeZoneTransition('previous'), moment.getTimeZoneTransition('next')])
  })
  const range = `${Math.min(...theirs).toFixed(1)}-${Math.max(...theirs).toFixed(1)}`
  return `the first use of a zone: ${ours.toFixed(2)} ms a year, temporal-polyfill's transitions around it ${range} ms`
}

function format(us: number | undefined): string {
  return us === undefined ? '-' : us.toFixed(2)
}

const COLUMNS = [34, 10, 14, 12, 16, 18] as const

function row(...cells: readonly string[]): string {
  return cells
    .map((cell, index) => (index === 0 ? cell.padEnd(COLUMNS[0]) : cell.padStart(COLUMNS[index] ?? 0)))
    .join('')
}

const lines = [row('microseconds', 'next', 'parse + next', 'bare next', 'bare new + next', 'library')]
let isMissed = false
for (const { name, input, library, isCounted } of CASES) {
  const cadence = parsed(input)
  const bare = library?.create()
  const [next = Infinity, parseNext = Infinity, bareNext, bareNew] = measure([
    (after) => cadence.next(after),
    (after) => parsed(input).next(after),
    ...(bare === undefined ? [] : [(after: number) => bare(new Date(after))]),
    ...(library === undefined ? [] : [(after: number) => library.create()(new Date(after))]),
  ])
  isMissed ||= next > NEXT_MAX_US || (parseNext > PARSE_NEXT_MAX_US && isCounted !== true)
  lines.push(row(name, format(next), format(parseNext), format(bareNext), format(bareNew), library?.name ?? '-'))
}
lines.push(
  `limits: next ${NEXT_MAX_US}, parse + next ${PARSE_NEXT_MAX_US}: ${isMissed ? 'MISSED' : 'kept'} (Node ${process.versions.node}, tzdata ${process.versions['tz']})`,
)
lines.push('', ...hostileLines(), zoneLine())
process.stdout.write(`${lines.join('\n')}\n`)
process.exitCode = isMissed ? 1 : 0
