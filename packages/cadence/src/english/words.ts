import { rangesOf } from '../rules/sorted-list.ts'

/** 0 is Sunday. */
export const WEEKDAYS = ['Sunday', 'Monday', 'Tuesday', 'Wednesday', 'Thursday', 'Friday', 'Saturday'] as const

/** 0 is January. */
export const MONTHS = [
  'January',
  'February',
  'March',
  'April',
  'May',
  'June',
  'July',
  'August',
  'September',
  'October',
  'November',
  'December',
] as const

/** `a`, `a and b`, `a, b and c`. */
export function joinWords(words: readonly string[]): string {
  if (words.length < 2) return words[0] ?? ''
  return `${words.slice(0, -1).join(', ')} and ${words.at(-1)}`
}

/** `1 minute`, `15 minutes`. */
export function countOf(number: number, unit: string): string {
  return `${number} ${unit}${number === 1 ? '' : 's'}`
}

/** `1st`, `22nd`, `last`, `3rd to last`. */
export function ordinal(number: number): string {
  if (number === -1) return 'last'
  const size = Math.abs(number)
  const tail = size % 100 >= 11 && size % 100 <= 13 ? 'th' : (['th', 'st', 'nd', 'rd'][size % 10] ?? 'th')
  return number < 0 ? `${size}${tail} to last` : `${size}${tail}`
}

/** Names numbers and shows consecutive ones as ranges: `Monday through Friday`, `Sunday`. */
export function rangeNames(numbers: readonly number[], name: (number: number) => string): string[] {
  return rangesOf(numbers).map(({ from, to }) => (from === to ? name(from) : `${name(from)} through ${name(to)}`))
}

/** `Monday through Friday and Sunday`. */
export function joinRanges(numbers: readonly number[], name: (number: number) => string): string {
  return joinWords(rangeNames(numbers, name))
}

/** 0 and 7 are Sunday. */
export function weekdayName(weekday: number): string {
  return WEEKDAYS[weekday % 7] ?? ''
}
