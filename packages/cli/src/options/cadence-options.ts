import { FOLD_POLICIES, GAP_POLICIES, type CadenceInput } from '@carillon/api'
import { InvalidArgumentError, Option, type Command } from 'commander'

import { usageError } from '../process/cli-error.ts'
import { dropUndefined, durationMs, isoDuration, moment, wholeNumber } from './option-values.ts'

type FrequencyCadence = Extract<CadenceInput, { kind: 'frequency' }>
type DayAndTime = Pick<FrequencyCadence, 'dayOfWeek' | 'timeOfDay'>

/** The cadence options as commander returns them. */
export interface CadenceOptions {
  readonly in?: number
  readonly at?: string
  readonly cron?: string
  readonly every?: string
  readonly rrule?: string
  readonly weekly?: DayAndTime
  readonly biweekly?: DayAndTime
  readonly monthly?: DayAndTime
  readonly timezone?: string
  readonly start?: string
  readonly startAt?: string
  readonly endAt?: string
  readonly maxRuns?: number
  readonly gap?: (typeof GAP_POLICIES)[number]
  readonly fold?: (typeof FOLD_POLICIES)[number]
}

const RULES = ['in', 'at', 'cron', 'every', 'rrule', 'weekly', 'biweekly', 'monthly'] as const
const RULE_FLAGS = RULES.map((name) => `--${name}`).join(', ')

export function addCadenceOptions(command: Command): Command {
  const rule = 'Schedule (pass one):'
  const bounds = 'Time zone and bounds:'
  const options = [
    option(rule, '--in <duration>', 'run once after this duration: 5s, 15m, PT1H', durationMs),
    option(rule, '--at <time>', 'run once at 2026-12-24T18:00:00Z, or at a local time with --timezone', moment),
    option(rule, '--cron <expression>', 'cron expression such as "0 9 * * 1-5" or @daily'),
    option(rule, '--every <duration>', 'interval: 15m, PT15M, 1d; days and longer keep local time', isoDuration),
    option(rule, '--rrule <rule>', 'RFC 5545 recurrence rule such as "FREQ=MONTHLY;BYDAY=1MO"'),
    option(rule, '--weekly <day@time>', 'every week, such as mon@09:00', dayAndTime),
    option(rule, '--biweekly <day@time>', 'every second week', dayAndTime),
    option(rule, '--monthly <day@time>', 'on the first such weekday of each month', dayAndTime),
    option(bounds, '--timezone <zone>', 'IANA time zone such as Europe/Madrid (default: UTC; a local --at needs one)'),
    option(bounds, '--start <time>', 'DTSTART of --rrule, in local time', moment),
    option(bounds, '--start-at <time>', 'no slots before this time', moment),
    option(bounds, '--end-at <time>', 'no slots after this time', moment),
    option(bounds, '--max-runs <count>', 'stop after this many slots', wholeNumber),
    option(bounds, '--gap <effect>', 'what to do at a local time that daylight saving skips').choices(GAP_POLICIES),
    option(bounds, '--fold <effect>', 'what to do at a local time that occurs twice').choices(FOLD_POLICIES),
  ]
  for (const each of options) command.addOption(each)
  return command
}

function option(group: string, flags: string, description: string, read?: (text: string) => unknown): Option {
  const created = new Option(flags, description).helpGroup(group)
  return read === undefined ? created : created.argParser(read)
}

const DAYS = ['sun', 'mon', 'tue', 'wed', 'thu', 'fri', 'sat']

/** Reads `mon@09:00`. */
function dayAndTime(text: string): DayAndTime {
  const [, day = '', time] = /^([a-z]{3})[a-z]*@(\d\d:\d\d)$/i.exec(text) ?? []
  const dayOfWeek = DAYS.indexOf(day.toLowerCase())
  if (time === undefined || dayOfWeek === -1) {
    throw new InvalidArgumentError('expected a day and a time such as mon@09:00')
  }
  return { dayOfWeek, timeOfDay: time }
}

/**
 * The cadence after an edit; undefined if the options do not change it. A new rule keeps the time zone of the current one:
 * a user who moves a schedule from 09:00 to 08:00 means the same local time.
 */
export function editedCadence(current: CadenceInput, options: CadenceOptions, now: number): CadenceInput | undefined {
  const rule = readCadence(options, now)
  if (rule === undefined) return hasBounds(options) ? withBounds(current, options) : undefined
  const { timezone } = current
  return timezone === undefined || namesZone(options) ? rule : { ...rule, timezone }
}

/** True if the options name a time zone, also inside --at or --rrule. */
function namesZone({ timezone, at = '', rrule = '' }: CadenceOptions): boolean {
  return timezone !== undefined || at.includes('[') || rrule.includes('TZID')
}

export function hasBounds(options: CadenceOptions): boolean {
  return Object.keys(readBounds(options)).length > 0
}

/** Like `readCadence`, but throws if the options describe no cadence. */
export function getCadence(options: CadenceOptions, now: number): CadenceInput {
  const cadence = readCadence(options, now)
  if (cadence === undefined) throw usageError(`expected one of ${RULE_FLAGS}, got none`)
  return cadence
}

/** The cadence that the options describe; undefined if they describe none. */
export function readCadence(options: CadenceOptions, now: number): CadenceInput | undefined {
  const given = RULES.filter((name) => options[name] !== undefined)
  if (given.length > 1) {
    throw usageError(`expected one of ${RULE_FLAGS}, got ${given.map((name) => `--${name}`).join(' and ')}`)
  }
  const rule = readRule(options, now)
  return rule === undefined ? undefined : withBounds(rule, options)
}

/** Adds the bounds without checking them: the server refuses those that do not apply to the kind of cadence, and says so. */
function withBounds(rule: CadenceInput, options: CadenceOptions): CadenceInput {
  return { ...rule, ...readBounds(options) }
}

/** The options of a cadence besides its rule. */
type Bounds = Pick<CadenceOptions, 'timezone' | 'start' | 'startAt' | 'endAt' | 'maxRuns'> & {
  readonly dst?: Pick<CadenceOptions, 'gap' | 'fold'>
}

function readBounds({ timezone, start, startAt, endAt, maxRuns, gap, fold }: CadenceOptions): Bounds {
  const dst = gap === undefined && fold === undefined ? undefined : dropUndefined({ gap, fold })
  return dropUndefined({ timezone, start, startAt, endAt, maxRuns, dst })
}

function readRule(options: CadenceOptions, now: number): CadenceInput | undefined {
  const { in: inMs, at, cron, every, rrule, weekly, biweekly, monthly } = options
  if (inMs !== undefined) return { kind: 'once', at: new Date(now + inMs).toISOString() }
  if (at !== undefined) return { kind: 'once', at }
  if (cron !== undefined) return { kind: 'cron', expression: cron }
  if (every !== undefined) return { kind: 'interval', every }
  if (rrule !== undefined) return { kind: 'rrule', rule: rrule }
  if (weekly !== undefined) return { kind: 'frequency', frequency: 'weekly', ...weekly }
  if (biweekly !== undefined) return { kind: 'frequency', frequency: 'biweekly', ...biweekly }
  return monthly === undefined ? undefined : { kind: 'frequency', frequency: 'monthly', ...monthly }
}
