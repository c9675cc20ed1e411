import { foundText } from '../input/found.ts'
import type { ProblemCode, ProblemList } from '../input/problem.ts'
import { ascending } from '../rules/sorted-list.ts'
import type { Moment } from '../slots/moment.ts'
import { isMomentProblem, parseMoment } from '../time/moment-text.ts'
import { DAY_MS } from '../time/wall-time.ts'
import { RRULE_FREQUENCIES, WEEKDAY_CODES } from './rrule-parts.ts'
import type { ByDay, RRuleFrequency, RRuleParts } from './rrule-parts.ts'

const RULE_MAX_LENGTH = 4000
const COUNT_MAX = 10_000

/** The largest INTERVAL of each frequency: 100 years. A larger one is rejected, because a search for the next slot has to end. */
const INTERVAL_MAX: Readonly<Record<RRuleFrequency, number>> = {
  SECONDLY: 3_155_760_000,
  MINUTELY: 52_596_000,
  HOURLY: 876_600,
  DAILY: 36_525,
  WEEKLY: 5217,
  MONTHLY: 1200,
  YEARLY: 100,
}

const UNTIL_EXPECTED = '20261231, 20261231T235959 or 20261231T235959Z for UNTIL'

interface Part {
  readonly name: string
  readonly value: string
  /** Where the value begins in the text of the rule. */
  readonly position: number
}

interface NumberRange {
  readonly min: number
  readonly max: number
  readonly isSigned: boolean
}

const NUMBER_LISTS: Readonly<Record<string, NumberRange>> = {
  // RFC 5545 allows second 60, but slots never lie in a leap second.
  BYSECOND: { min: 0, max: 59, isSigned: false },
  BYMINUTE: { min: 0, max: 59, isSigned: false },
  BYHOUR: { min: 0, max: 23, isSigned: false },
  BYMONTHDAY: { min: 1, max: 31, isSigned: true },
  BYYEARDAY: { min: 1, max: 366, isSigned: true },
  BYWEEKNO: { min: 1, max: 53, isSigned: true },
  BYMONTH: { min: 1, max: 12, isSigned: false },
  BYSETPOS: { min: 1, max: 366, isSigned: true },
}

const PART_NAMES = ['FREQ', 'INTERVAL', 'COUNT', 'UNTIL', 'BYDAY', 'WKST', ...Object.keys(NUMBER_LISTS)]

/**
 * Parses `FREQ=…;…`. If parts are wrong, adds each problem to `problems` and returns undefined.
 * @param base where `text` begins in the field: added to the position of each problem
 */
export function parseRRule(text: string, field: string, problems: ProblemList, base = 0): RRuleParts | undefined {
  if (text.length > RULE_MAX_LENGTH) {
    problems.add('too_long', field, `at most ${RULE_MAX_LENGTH} characters`, `${text.length} characters`)
    return undefined
  }
  return new RRuleReader(text, field, problems, base).read()
}

class RRuleReader {
  readonly #text: string
  readonly #field: string
  readonly #problems: ProblemList
  readonly #base: number
  readonly #parts = new Map<string, Part>()
  #isValid = true

  constructor(text: string, field: string, problems: ProblemList, base: number) {
    this.#text = text
    this.#field = field
    this.#problems = problems
    this.#base = base
  }

  read(): RRuleParts | undefined {
    this.#split()
    const freq = this.#freq()
    if (freq === undefined) return undefined
    const parts = {
      freq,
      interval: this.#positive('INTERVAL', INTERVAL_MAX[freq]) ?? 1,
      count: this.#positive('COUNT', COUNT_MAX) ?? null,
      until: this.#until(),
      bySecond: this.#numbers('BYSECOND'),
      byMinute: this.#numbers('BYMINUTE'),
      byHour: this.#numbers('BYHOUR'),
      byDay: this.#byDay(),
      byMonthDay: this.#numbers('BYMONTHDAY'),
      byYearDay: this.#numbers('BYYEARDAY'),
      byWeekNo: this.#numbers('BYWEEKNO'),
      byMonth: this.#numbers('BYMONTH'),
      bySetPos: this.#numbers('BYSETPOS'),
      weekStart: this.#weekStart(),
    }
    this.#checkCombinations(parts)
    return this.#isValid ? parts : undefined
  }

  #split(): void {
    let position = 0
    for (const text of this.#text.split(';')) {
      const at = position
      position += text.length + 1
      const equals = text.indexOf('=')
      const name = text.slice(0, equals).toUpperCase()
      const value = text.slice(equals + 1).toUpperCase()
      if (equals < 1 || value === '') {
        // Many programs write a trailing semicolon.
        if (text === '' && at > 0 && position > this.#text.length) continue
        this.#reject('syntax', 'NAME=value', text, at)
      } else if (!PART_NAMES.includes(name)) {
        this.#reject('unsupported', `one of ${PART_NAMES.join(', ')}`, name, at)
      } else if (this.#parts.has(name)) {
        this.#reject('conflict', `${name} once`, `${name} again`, at)
      } else {
        this.#parts.set(name, { name, value, position: at + equals + 1 })
      }
    }
  }

  #freq(): RRuleFrequency | undefined {
    const part = this.#parts.get('FREQ')
    if (part === undefined) {
      if (this.#isValid) this.#reject('syntax', 'FREQ, such as FREQ=DAILY', this.#text, 0)
      return undefined
    }
    const freq = RRULE_FREQUENCIES.find((known) => known === part.value)
    if (freq === undefined) this.#reject('syntax', `one of ${RRULE_FREQUENCIES.join(', ')}`, part.value, part.position)
    return freq
  }

  #positive(name: string, max: number): number | undefined {
    const part = this.#parts.get(name)
    if (part === undefined) return undefined
    const value = Number(part.value)
    if (/^\d{1,10}$/.test(part.value) && value >= 1 && value <= max) return value
    const code = /^-?\d+$/.test(part.value) ? 'out_of_range' : 'syntax'
    this.#reject(code, `a whole number from 1 to ${max} for ${name}`, part.value, part.position)
    return undefined
  }

  #numbers(name: string): readonly number[] {
    const part = this.#parts.get(name)
    const range = NUMBER_LISTS[name]
    if (part === undefined || range === undefined) return []
    const sign = range.isSigned ? ` or -${range.max} to -${range.min}` : ''
    const expected = `${range.min} to ${range.max}${sign} for ${name}`
    const numbers: number[] = []
    let position = part.position
    for (const item of part.value.split(',')) {
      const value = Number(item)
      const size = range.isSigned ? Math.abs(value) : value
      if (!/^[+-]?\d{1,3}$/.test(item) || (!range.isSigned && !/^\d+$/.test(item))) {
        this.#reject(/^[+-]?\d+$/.test(item) ? 'out_of_range' : 'syntax', expected, item, position)
        return []
      }
      if (size < range.min || size > range.max) {
        this.#reject('out_of_range', expected, item, position)
        return []
      }
      numbers.push(value)
      position += item.length + 1
    }
    return ascending(numbers)
  }

  #byDay(): readonly ByDay[] {
    const part = this.#parts.get('BYDAY')
    if (part === undefined) return []
    const days = new Map<string, ByDay>()
    let position = part.position
    for (const item of part.value.split(',')) {
      const match = /^([+-]?\d{1,2})?([A-Z]{2})$/.exec(item)
      const weekday = WEEKDAY_CODES.findIndex((code) => code === match?.[2])
      const ordinal = match?.[1] === undefined ? null : Number(match[1])
      if (match === null || weekday < 0) {
        this.#reject('syntax', `a weekday such as ${WEEKDAY_CODES.join(', ')}, 2MO or -1FR for BYDAY`, item, position)
        return []
      }
      if (ordinal !== null && (ordinal === 0 || Math.abs(ordinal) > 53)) {
        this.#reject('out_of_range', 'an ordinal from 1 to 53 or -53 to -1 for BYDAY', item, position)
        return []
      }
      days.set(`${ordinal} ${weekday}`, { weekday, ordinal })
      position += item.length + 1
    }
    return [...days.values()].toSorted((a, b) => (a.ordinal ?? 0) - (b.ordinal ?? 0) || a.weekday - b.weekday)
  }

  #weekStart(): number {
    const part = this.#parts.get('WKST')
    if (part === undefined) return 1
    const weekday = WEEKDAY_CODES.findIndex((code) => code === part.value)
    if (weekday < 0) this.#reject('syntax', `one of ${WEEKDAY_CODES.join(', ')} for WKST`, part.value, part.position)
    return weekday
  }

  #until(): Moment | null {
    const part = this.#parts.get('UNTIL')
    if (part === undefined) return null
    const { value, position } = part
    const written = parseMoment(value)
    if (isMomentProblem(written)) {
      const isSyntax = written.code === 'syntax'
      this.#reject(written.code, isSyntax ? UNTIL_EXPECTED : written.expected, value, position)
      return null
    }
    // A date without a time includes that whole day.
    if (written.isDateOnly) return { kind: 'wall', at: written.wall + DAY_MS - 1 }
    return written.offset === null
      ? { kind: 'wall', at: written.wall }
      : { kind: 'instant', at: written.wall - written.offset }
  }

  /** Rejects combinations that RFC 5545 forbids. Other libraries accept them and disagree about their meaning. */
  #checkCombinations(parts: RRuleParts): void {
    const { freq } = parts
    const has = (name: string): boolean => this.#parts.has(name)
    const forbid = (name: string, isForbidden: boolean, expected: string): void => {
      const part = this.#parts.get(name)
      if (part !== undefined && isForbidden) this.#reject('conflict', expected, `${name}=${part.value}`, part.position)
    }
    forbid('COUNT', has('UNTIL'), 'either COUNT or UNTIL')
    forbid('BYWEEKNO', freq !== 'YEARLY', 'BYWEEKNO only with FREQ=YEARLY')
    forbid('BYYEARDAY', ['DAILY', 'WEEKLY', 'MONTHLY'].includes(freq), `no BYYEARDAY with FREQ=${freq}`)
    forbid('BYMONTHDAY', freq === 'WEEKLY', 'no BYMONTHDAY with FREQ=WEEKLY')
    const hasOrdinal = parts.byDay.some(({ ordinal }) => ordinal !== null)
    const takesOrdinal = freq === 'MONTHLY' || (freq === 'YEARLY' && !has('BYWEEKNO'))
    forbid(
      'BYDAY',
      hasOrdinal && !takesOrdinal,
      'BYDAY ordinals only with FREQ=MONTHLY, or FREQ=YEARLY without BYWEEKNO',
    )
    const hasOtherBy = [...this.#parts.keys()].some((name) => name.startsWith('BY') && name !== 'BYSETPOS')
    forbid('BYSETPOS', !hasOtherBy, 'another BY part beside BYSETPOS')
  }

  #reject(code: ProblemCode, expected: string, found: string, position: number): void {
    this.#isValid = false
    this.#problems.add(code, this.#field, expected, found === '' ? 'nothing' : foundText(found), this.#base + position)
  }
}
