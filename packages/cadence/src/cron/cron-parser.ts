import { foundText } from '../input/found.ts'
import type { ProblemCode, ProblemList } from '../input/problem.ts'
import { ascending } from '../rules/sorted-list.ts'
import { DAY_OF_MONTH_FIELD, DAY_OF_WEEK_FIELD, HOUR_FIELD, MINUTE_FIELD, MONTH_FIELD } from './cron-expression.ts'
import type { CronExpression, CronField, CronFieldShape } from './cron-expression.ts'

const CRON_MAX_LENGTH = 1000

const MACROS: Readonly<Record<string, string>> = {
  '@yearly': '0 0 1 1 *',
  '@annually': '0 0 1 1 *',
  '@monthly': '0 0 1 * *',
  '@weekly': '0 0 * * 0',
  '@daily': '0 0 * * *',
  '@midnight': '0 0 * * *',
  '@hourly': '0 * * * *',
}

const FIVE_FIELDS = 'five fields: minute, hour, day of month, month and day of week'

interface Token {
  readonly text: string
  readonly position: number
}

/** Parses an expression. If fields are wrong, adds the first problem of each to `problems` and returns undefined. */
export function parseCron(source: string, field: string, problems: ProblemList): CronExpression | undefined {
  if (source.length > CRON_MAX_LENGTH) {
    problems.add('too_long', field, `at most ${CRON_MAX_LENGTH} characters`, `${source.length} characters`)
    return undefined
  }
  const tokens = tokenize(source)
  const first = tokens[0]
  if (first?.text.startsWith('@')) return parseMacro(source, first, tokens.length, field, problems)
  if (first !== undefined && /^(CRON_)?TZ=/i.test(first.text)) {
    const found = foundText(first.text)
    problems.add('unsupported', field, `${FIVE_FIELDS} (put the zone into "timezone")`, found, first.position)
    return undefined
  }
  if (tokens.length !== 5) {
    const isSeconds = tokens.length === 6 || tokens.length === 7
    const hint = isSeconds ? '; fields for seconds or years are not supported' : ''
    problems.add(
      isSeconds ? 'unsupported' : 'syntax',
      field,
      `${FIVE_FIELDS}${hint}`,
      `${tokens.length} in ${foundText(source)}`,
    )
    return undefined
  }
  return parseFields(tokens, field, problems)
}

function parseMacro(
  source: string,
  macro: Token,
  tokenCount: number,
  field: string,
  problems: ProblemList,
): CronExpression | undefined {
  const name = macro.text.toLowerCase()
  const expansion = Object.hasOwn(MACROS, name) ? MACROS[name] : undefined
  if (expansion === undefined || tokenCount !== 1) {
    const hint = name === '@every' ? ' (use the kind "interval" for a fixed distance)' : ''
    const isKnown = name === '@reboot' || name === '@every'
    const expected = `one of ${Object.keys(MACROS).join(', ')} alone${hint}`
    problems.add(isKnown ? 'unsupported' : 'syntax', field, expected, foundText(source.trim()), macro.position)
    return undefined
  }
  return parseFields(tokenize(expansion), field, problems)
}

function tokenize(source: string): Token[] {
  return [...source.matchAll(/[^ \t]+/g)].map((match) => ({ text: match[0], position: match.index }))
}

function parseFields(tokens: readonly Token[], field: string, problems: ProblemList): CronExpression | undefined {
  const read = (index: number, shape: CronFieldShape): CronField | undefined => {
    const token = tokens[index]
    return token === undefined ? undefined : new FieldReader(shape, field, problems).read(token)
  }
  const minute = read(0, MINUTE_FIELD)
  const hour = read(1, HOUR_FIELD)
  const dayOfMonth = read(2, DAY_OF_MONTH_FIELD)
  const month = read(3, MONTH_FIELD)
  const dayOfWeek = read(4, DAY_OF_WEEK_FIELD)
  if (!minute || !hour || !dayOfMonth || !month || !dayOfWeek) return undefined
  return { minute, hour, dayOfMonth, month, dayOfWeek }
}

/** Syntax of other cron dialects that is not supported, with what to write instead. */
const UNSUPPORTED_SYNTAX: readonly { readonly pattern: RegExp; readonly hint: string }[] = [
  { pattern: /^H(\(.*\))?(\/\d+)?$/i, hint: 'a number ("H" differs between servers; use "spread" for jitter)' },
  { pattern: /^\?$/, hint: '"*"' },
  { pattern: /^(\d+|L)?W$/i, hint: 'a day of month (nearest-weekday "W" is not supported)' },
  { pattern: /^L-\d+$/i, hint: 'a number, or "L" alone for the last day of the month' },
]

class FieldReader {
  readonly #shape: CronFieldShape
  readonly #field: string
  readonly #problems: ProblemList
  #isValid = true

  constructor(shape: CronFieldShape, field: string, problems: ProblemList) {
    this.#shape = shape
    this.#field = field
    this.#problems = problems
  }

  read(token: Token): CronField | undefined {
    const values = new Set<number>()
    const lastWeekdays = new Set<number>()
    const nthWeekdays = new Map<string, { weekday: number; nth: number }>()
    let hasLastDay = false
    let position = token.position
    for (const text of token.text.split(',')) {
      const item = { text, position }
      if (this.#isDayOfMonth && /^L$/i.test(text)) hasLastDay = true
      else if (this.#isDayOfWeek && /^[^L#]+L$/i.test(text)) this.#readLastWeekday(item, lastWeekdays)
      else if (this.#isDayOfWeek && text.includes('#')) this.#readNthWeekday(item, nthWeekdays)
      else this.#readRange(item, values)
      position += text.length + 1
      // One problem per field is enough: the next ones would mostly repeat it.
      if (!this.#isValid) return undefined
    }
    return {
      text: token.text.toUpperCase(),
      values: ascending(values),
      isStar: token.text.startsWith('*'),
      hasLastDay,
      lastWeekdays: ascending(lastWeekdays),
      nthWeekdays: [...nthWeekdays.values()],
    }
  }

  get #isDayOfMonth(): boolean {
    return this.#shape === DAY_OF_MONTH_FIELD
  }

  get #isDayOfWeek(): boolean {
    return this.#shape === DAY_OF_WEEK_FIELD
  }

  #readLastWeekday({ text, position }: Token, into: Set<number>): void {
    const weekday = this.#readValue({ text: text.slice(0, -1), position })
    if (weekday !== undefined) into.add(weekday % 7)
  }

  #readNthWeekday({ text, position }: Token, into: Map<string, { weekday: number; nth: number }>): void {
    const [dayText = '', nthText = '', ...rest] = text.split('#')
    const weekday = this.#readValue({ text: dayText, position })
    if (weekday === undefined) return
    if (rest.length > 0 || !/^[1-5]$/.test(nthText)) {
      const code = /^\d+$/.test(nthText) && rest.length === 0 ? 'out_of_range' : 'syntax'
      this.#reject(
        code,
        'a number from 1 to 5 after "#"',
        text.slice(dayText.length + 1),
        position + dayText.length + 1,
      )
      return
    }
    into.set(`${weekday % 7}#${nthText}`, { weekday: weekday % 7, nth: Number(nthText) })
  }

  #readRange({ text, position }: Token, into: Set<number>): void {
    const [rangeText = '', stepText, ...rest] = text.split('/')
    if (rest.length > 0) return this.#reject('syntax', 'one step at most', text, position)
    const range = this.#readBounds({ text: rangeText, position }, stepText !== undefined)
    if (range === undefined) return
    const step =
      stepText === undefined ? 1 : this.#readStep({ text: stepText, position: position + rangeText.length + 1 })
    if (step === undefined) return
    for (let value = range.low; value <= range.high; value += step) into.add(this.#isDayOfWeek ? value % 7 : value)
  }

  #readBounds({ text, position }: Token, hasStep: boolean): { low: number; high: number } | undefined {
    const { min, max } = this.#shape
    // Sunday is both 0 and 7, but `*` contains each day once.
    if (text === '*') return { low: min, high: this.#isDayOfWeek ? 6 : max }
    const [lowText = '', highText, ...rest] = text.split('-')
    const foreign = UNSUPPORTED_SYNTAX.find(({ pattern }) => pattern.test(text))
    if (foreign !== undefined) {
      this.#reject('unsupported', foreign.hint, text, position)
      return undefined
    }
    if (rest.length > 0) {
      this.#reject('syntax', 'a range of two values', text, position)
      return undefined
    }
    const low = this.#readValue({ text: lowText, position })
    if (low === undefined) return undefined
    if (highText === undefined) {
      if (!hasStep) return { low, high: low }
      this.#reject(
        'unsupported',
        `a range such as ${lowText}-${this.#isDayOfWeek ? 6 : max} before the step`,
        text,
        position,
      )
      return undefined
    }
    const highPosition = position + lowText.length + 1
    const named = this.#readValue({ text: highText, position: highPosition })
    if (named === undefined) return undefined
    const high = this.#isDayOfWeek && named === 0 && low > 0 ? 7 : named
    if (high < low) {
      this.#reject('out_of_range', `a range that ends at or after ${lowText}`, highText, highPosition)
      return undefined
    }
    return { low, high }
  }

  #readStep({ text, position }: Token): number | undefined {
    const most = this.#shape.max
    const expected = `a step from 1 to ${most}`
    if (!/^\d{1,4}$/.test(text)) {
      this.#reject('syntax', expected, text, position)
      return undefined
    }
    const step = Number(text)
    if (step >= 1 && step <= most) return step
    const hint = step > most ? ' (for longer distances use the kind "interval")' : ''
    this.#reject('out_of_range', `${expected}${hint}`, text, position)
    return undefined
  }

  #readValue({ text, position }: Token): number | undefined {
    const { min, max, names } = this.#shape
    const nameIndex = names.indexOf(text.toUpperCase())
    if (nameIndex >= 0) return min + nameIndex
    const expected = `${min} to ${max}${names.length > 0 ? ` or ${names[0]} to ${names.at(-1)}` : ''}`
    if (!/^\d{1,2}$/.test(text)) {
      const isLast = this.#isDayOfWeek && /^L$/i.test(text)
      const hint = isLast ? ' (the last Saturday of the month is 6L)' : ''
      this.#reject(/^\d+$/.test(text) ? 'out_of_range' : 'syntax', `${expected}${hint}`, text, position)
      return undefined
    }
    const value = Number(text)
    if (value >= min && value <= max) return value
    this.#reject('out_of_range', expected, text, position)
    return undefined
  }

  #reject(code: ProblemCode, expected: string, found: string, position: number): void {
    this.#isValid = false
    const what = found === '' ? 'nothing' : foundText(found)
    this.#problems.add(code, this.#field, `${expected} in the ${this.#shape.name} field`, what, position)
  }
}
