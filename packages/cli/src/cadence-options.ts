import type { CadenceInput } from '@carillon/api'
import { Option, type Command } from 'commander'

import { usageError } from './cli-error.ts'
import { durationMs, isoDuration, moment, wholeNumber } from './option-values.ts'
import { dayAndTime, type DayAndTime } from './weekly-text.ts'

/** The flags of a cadence, as commander reads them. */
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
  readonly gap?: 'shift' | 'skip'
  readonly fold?: 'first' | 'second' | 'both'
}

const RULES = ['in', 'at', 'cron', 'every', 'rrule', 'weekly', 'biweekly', 'monthly'] as const
const RULE_FLAGS = RULES.map((name) => `--${name}`).join(', ')

export function addCadenceOptions(command: Command): Command {
  const when = 'When (one of these):'
  const bounds = 'When, more closely:'
  const options = [
    option(when, '--in <duration>', 'once, so long from now: 5s, 15m, PT1H', durationMs),
    option(when, '--at <moment>', 'once: 2026-12-24T18:00:00Z, or a local time with --timezone', moment),
    option(when, '--cron <expression>', 'such as "0 9 * * 1-5" or @daily'),
    option(when, '--every <duration>', 'every so often: 15m, PT15M, 1d', isoDuration),
    option(when, '--rrule <rule>', 'RFC 5545, such as "FREQ=MONTHLY;BYDAY=1MO"'),
    option(when, '--weekly <day@time>', 'such as mon@09:00', dayAndTime),
    option(when, '--biweekly <day@time>', 'every second week', dayAndTime),
    option(when, '--monthly <day@time>', 'on the first such day of a month', dayAndTime),
    option(bounds, '--timezone <zone>', 'IANA name such as Europe/Madrid (UTC)'),
    option(bounds, '--start <moment>', 'the DTSTART of --rrule, in local time', moment),
    option(bounds, '--start-at <moment>', 'no slot before', moment),
    option(bounds, '--end-at <moment>', 'no slot after', moment),
    option(bounds, '--max-runs <count>', 'at most so many slots', wholeNumber),
    option(bounds, '--gap <effect>', 'for a local time that the clocks skip').choices(['shift', 'skip']),
    option(bounds, '--fold <effect>', 'for a local time that comes twice').choices(['first', 'second', 'both']),
  ]
  for (const each of options) command.addOption(each)
  return command
}

function option(group: string, flags: string, description: string, read?: (text: string) => unknown): Option {
  const made = new Option(flags, description).helpGroup(group)
  return read === undefined ? made : made.argParser(read)
}

/**
 * What an edit makes of a cadence; undefined if the flags say nothing of it. A new rule keeps the zone: whoever moves nine
 * o'clock to eight means the same clocks.
 */
export function editedCadence(current: CadenceInput, options: CadenceOptions, now: number): CadenceInput | undefined {
  const rule = readCadence(options, now)
  if (rule === undefined) return hasBounds(options) ? boundedCadence(current, options) : undefined
  const { timezone } = current
  return timezone === undefined || hasZone(options) ? rule : { ...rule, timezone }
}

/** Whether the flags name a zone, be it within a rule. */
function hasZone({ timezone, at = '', rrule = '' }: CadenceOptions): boolean {
  return timezone !== undefined || at.includes('[') || rrule.includes('TZID')
}

export function hasBounds(options: CadenceOptions): boolean {
  return Object.keys(readBounds(options)).length > 0
}

/** The cadence that must be there. */
export function requireCadence(options: CadenceOptions, now: number): CadenceInput {
  const cadence = readCadence(options, now)
  if (cadence === undefined) throw usageError(`expected one of ${RULE_FLAGS}, got none: say when`)
  return cadence
}

/** The cadence that the flags say; undefined if none of them does. */
export function readCadence(options: CadenceOptions, now: number): CadenceInput | undefined {
  const given = RULES.filter((name) => options[name] !== undefined)
  if (given.length > 1) {
    throw usageError(`expected one of ${RULE_FLAGS}, got ${given.map((name) => `--${name}`).join(' and ')}`)
  }
  const rule = readRule(options, now)
  return rule === undefined ? undefined : boundedCadence(rule, options)
}

/** What does not belong to a kind of cadence is refused by the service, which says so. */
function boundedCadence(rule: CadenceInput, options: CadenceOptions): CadenceInput {
  return { ...rule, ...readBounds(options) }
}

/** The flags that say more of a rule, without the rule itself. */
type Bounds = Pick<CadenceOptions, 'timezone' | 'start' | 'startAt' | 'endAt' | 'maxRuns'> & {
  readonly dst?: Pick<CadenceOptions, 'gap' | 'fold'>
}

function readBounds(options: CadenceOptions): Bounds {
  const { timezone, start, startAt, endAt, maxRuns, gap, fold } = options
  const dst = { ...(gap === undefined ? {} : { gap }), ...(fold === undefined ? {} : { fold }) }
  return {
    ...(timezone === undefined ? {} : { timezone }),
    ...(start === undefined ? {} : { start }),
    ...(startAt === undefined ? {} : { startAt }),
    ...(endAt === undefined ? {} : { endAt }),
    ...(maxRuns === undefined ? {} : { maxRuns }),
    ...(Object.keys(dst).length === 0 ? {} : { dst }),
  }
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
