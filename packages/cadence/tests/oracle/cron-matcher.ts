import { defaultPolicy, type Policy } from './dst.ts'
import { DAY, MINUTE, type Zone } from './zone.ts'

/**
 * Decides whether one instant is a slot of a cron expression. It tests that instant only and never searches, so its rules
 * can be compared with the README line by line. It expects a valid expression.
 */
export class CronMatcher {
  readonly policy: Policy
  readonly #zone: Zone
  readonly #minutes: Set<number>
  readonly #hours: Set<number>
  readonly #months: Set<number>
  readonly #dayOfMonth: string
  readonly #dayOfWeek: string
  readonly #days = new Map<number, boolean>()

  constructor(expression: string, zone: Zone, policy: Partial<Policy> = {}) {
    const [minute = '', hour = '', dayOfMonth = '', month = '', dayOfWeek = ''] = expandMacro(expression).split(/\s+/)
    this.#zone = zone
    this.#minutes = readList(minute, 0, 59, [])
    this.#hours = readList(hour, 0, 23, [])
    this.#months = readList(month, 1, 12, MONTHS)
    this.#dayOfMonth = dayOfMonth.toUpperCase()
    this.#dayOfWeek = dayOfWeek.toUpperCase()
    this.policy = { ...defaultPolicy(this.#timesOfTwoDays()), ...policy }
  }

  isSlot(instant: number): boolean {
    if (instant % MINUTE !== 0) return false
    return this.#isOnTime(instant) || this.#isShiftedHere(instant)
  }

  /** The slots among all minutes of `[from, to)`. */
  slots(from: number, to: number): number[] {
    const slots: number[] = []
    for (let minute = Math.ceil(from / MINUTE) * MINUTE; minute < to; minute += MINUTE) {
      if (this.isSlot(minute)) slots.push(minute)
    }
    return slots
  }

  /** The first slot of `(after, before)`: tries every minute of every day near a date that the expression names. */
  firstSlot(after: number, before: number): number | null {
    let minute = Math.floor(after / MINUTE) * MINUTE + MINUTE
    while (minute < before) {
      if (this.#isFarFromAnyDay(minute)) {
        minute += DAY
      } else {
        if (this.isSlot(minute)) return minute
        minute += MINUTE
      }
    }
    return null
  }

  /** True if any date has a slot. The Gregorian calendar repeats after 400 years, so 400 years are tried. */
  canFire(): boolean {
    for (let day = Date.UTC(2000, 0, 1); day < Date.UTC(2400, 0, 1); day += DAY) if (this.isDay(day)) return true
    return false
  }

  /** True if the expression names the date of this wall time. */
  isDay(wall: number): boolean {
    const day = Math.floor(wall / DAY) * DAY
    let answer = this.#days.get(day)
    if (answer === undefined) this.#days.set(day, (answer = this.#decideDay(new Date(day))))
    return answer
  }

  /** Two days in each direction: no offset or gap moves a slot further from its date, and one day of margin remains. */
  #isFarFromAnyDay(instant: number): boolean {
    return [-2, -1, 0, 1, 2, 3].every((days) => !this.isDay(instant + days * DAY))
  }

  #isOnTime(instant: number): boolean {
    const wall = this.#zone.wallAt(instant)
    if (!this.#isNamed(wall)) return false
    const passes = this.#zone.instantsOf(wall)
    if (passes.length === 1 || this.policy.fold === 'both') return true
    return instant === (this.policy.fold === 'first' ? passes[0] : passes[1])
  }

  #isShiftedHere(instant: number): boolean {
    const gap = this.policy.gap === 'shift' ? this.#zone.gapEndingAt(instant) : null
    if (gap === null) return false
    for (let wall = gap.from; wall < gap.to; wall += MINUTE) if (this.#isNamed(wall)) return true
    return false
  }

  #isNamed(wall: number): boolean {
    const minuteOfDay = Math.floor((wall - Math.floor(wall / DAY) * DAY) / MINUTE)
    return this.#minutes.has(minuteOfDay % 60) && this.#hours.has(Math.floor(minuteOfDay / 60)) && this.isDay(wall)
  }

  #decideDay(date: Date): boolean {
    if (!this.#months.has(date.getUTCMonth() + 1)) return false
    const isDayOfMonth = matchesDayOfMonth(this.#dayOfMonth, date)
    const isDayOfWeek = matchesDayOfWeek(this.#dayOfWeek, date)
    const areBothRestricted = !this.#dayOfMonth.startsWith('*') && !this.#dayOfWeek.startsWith('*')
    return areBothRestricted ? isDayOfMonth || isDayOfWeek : isDayOfMonth && isDayOfWeek
  }

  #timesOfTwoDays(): number[] {
    const hours = [...this.#hours].flatMap((hour) => [hour, hour + 24])
    return hours.flatMap((hour) => [...this.#minutes].map((minute) => (hour * 60 + minute) * MINUTE))
  }
}

const MONTHS = ['', 'JAN', 'FEB', 'MAR', 'APR', 'MAY', 'JUN', 'JUL', 'AUG', 'SEP', 'OCT', 'NOV', 'DEC']
const WEEKDAYS = ['SUN', 'MON', 'TUE', 'WED', 'THU', 'FRI', 'SAT']

const MACROS: Record<string, string> = {
  '@yearly': '0 0 1 1 *',
  '@annually': '0 0 1 1 *',
  '@monthly': '0 0 1 * *',
  '@weekly': '0 0 * * 0',
  '@daily': '0 0 * * *',
  '@midnight': '0 0 * * *',
  '@hourly': '0 * * * *',
}

function expandMacro(expression: string): string {
  return MACROS[expression.toLowerCase()] ?? expression
}

function matchesDayOfMonth(field: string, date: Date): boolean {
  const isLast = new Date(date.getTime() + DAY).getUTCDate() === 1
  return field
    .split(',')
    .some((part) => (part === 'L' ? isLast : readPart(part, 1, 31, []).includes(date.getUTCDate())))
}

function matchesDayOfWeek(field: string, date: Date): boolean {
  const isLastOfItsKind = new Date(date.getTime() + 7 * DAY).getUTCMonth() !== date.getUTCMonth()
  const ordinal = Math.ceil(date.getUTCDate() / 7)
  return field.split(',').some((part) => {
    const nth = /^(\w+)#([1-5])$/.exec(part)
    if (nth !== null) return isWeekday(nth[1] ?? '', date) && ordinal === Number(nth[2])
    const last = /^(\d|SUN|MON|TUE|WED|THU|FRI|SAT)L$/.exec(part)
    if (last !== null) return isWeekday(last[1] ?? '', date) && isLastOfItsKind
    return isWeekday(part, date)
  })
}

function isWeekday(part: string, date: Date): boolean {
  const endsInSunday = part.replace(/-SUN\b/, '-7')
  return readPart(endsInSunday, 0, 7, WEEKDAYS).some((day) => day % 7 === date.getUTCDay())
}

function readList(field: string, lowest: number, highest: number, names: string[]): Set<number> {
  return new Set(
    field
      .toUpperCase()
      .split(',')
      .flatMap((part) => readPart(part, lowest, highest, names)),
  )
}

function readPart(part: string, lowest: number, highest: number, names: string[]): number[] {
  const [range = '', step = '1'] = part.split('/')
  const [from = '', to = from] = range === '*' ? [String(lowest), String(highest)] : range.split('-')
  const last = readValue(to, names)
  const values: number[] = []
  for (let value = readValue(from, names); value <= last; value += Number(step)) values.push(value)
  return values
}

function readValue(value: string, names: string[]): number {
  const index = names.indexOf(value)
  return index === -1 ? Number(value) : index
}
