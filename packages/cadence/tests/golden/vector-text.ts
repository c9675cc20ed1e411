import type { Policy } from '../oracle/dst.ts'
import { DAY, zone, type Zone } from '../oracle/zone.ts'
import { PATTERNS, type Pattern } from './patterns.ts'

/**
 * One file per zone, one section per pattern, one line per DST change:
 *
 *     2027-03-14T07:00Z  shift* -05:00 13T02:30 -04:00 14T03:00 15T02:30  skip -05:00 13T02:30 -04:00 15T02:30
 *
 * Slots are local times that begin with the day of the month, listed after their offset. A star marks the default policy.
 * Policies joined as in `first/second/both` give the same slots.
 */
export interface Variant {
  readonly label: string
  /** The `dst` field of the input; absent if the line pins the default. */
  readonly dst: Partial<Policy>
  readonly policy: Policy
}

export type SlotsOf = (pattern: Pattern, variant: Variant, from: number, to: number) => number[]

export function fileName(timezone: string): string {
  return `${timezone.toLowerCase().replaceAll(/[^a-z]+/g, '-')}.txt`
}

/** The text of a file. Its slots come from the oracle or from the library. */
export function printZone(timezone: string, tzdata: string, slotsOf: SlotsOf): string {
  const place = zone(timezone)
  const lines = [`# ${timezone}, tzdata ${tzdata}`]
  for (const pattern of PATTERNS) {
    lines.push('', `[${JSON.stringify(pattern.input)}]`)
    for (const middle of moments(place)) lines.push(printLine(place, pattern, middle, slotsOf))
  }
  return `${lines.join('\n')}\n`
}

export function readTzdata(text: string): string {
  return /tzdata (\S+)/.exec(text)?.[1] ?? 'unknown'
}

function printLine(place: Zone, pattern: Pattern, middle: number, slotsOf: SlotsOf): string {
  const labels = new Map<string, string[]>()
  for (const variant of variantsOf(place, pattern, middle)) {
    const slots = printSlots(place, slotsOf(pattern, variant, middle - pattern.reach, middle + pattern.reach))
    labels.set(slots, [...(labels.get(slots) ?? []), variant.label])
  }
  const variants = [...labels].map(([slots, same]) => `${same.join('/')} ${slots}`)
  return [`${new Date(middle).toISOString().slice(0, 16)}Z`, ...variants].join('  ')
}

/** Both gap policies at a spring-forward, all fold policies at a fall-back, else the default policy only. */
function variantsOf(place: Zone, { isLocal, byDefault }: Pattern, middle: number): Variant[] {
  const change = place.offsetAt(middle) - place.offsetAt(middle - 1)
  if (!isLocal || change === 0) return [{ label: '*', dst: {}, policy: byDefault }]
  const choices: Partial<Policy>[] =
    change > 0 ? [{ gap: 'shift' }, { gap: 'skip' }] : [{ fold: 'first' }, { fold: 'second' }, { fold: 'both' }]
  return choices.map((choice) => {
    const isDefault =
      (choice.gap ?? byDefault.gap) === byDefault.gap && (choice.fold ?? byDefault.fold) === byDefault.fold
    const label = `${choice.gap ?? choice.fold}${isDefault ? '*' : ''}`
    return { label, dst: isDefault ? {} : choice, policy: { ...byDefault, ...choice } }
  })
}

function printSlots(place: Zone, slots: number[]): string {
  let offset = ''
  const words: string[] = []
  for (const slot of slots) {
    const text = place.print(slot)
    if (text.slice(19) !== offset) words.push((offset = text.slice(19)))
    words.push(text.slice(8, 16))
  }
  return words.length === 0 ? 'none' : words.join(' ')
}

/** Every transition from 2020 to 2035 and the day that Samoa skipped; two ordinary days in a year without transitions. */
function moments(place: Zone): number[] {
  const found = place.transitions(Date.UTC(2011, 11, 1), Date.UTC(2012, 0, 15)).map(({ at }) => at)
  for (let year = 2020; year <= 2035; year += 1) {
    const transitions = place.transitions(Date.UTC(year, 0, 1), Date.UTC(year + 1, 0, 1)).map(({ at }) => at)
    found.push(...(transitions.length > 0 ? transitions : [spring(year), spring(year) + 183 * DAY]))
  }
  return found
}

function spring(year: number): number {
  return Date.UTC(year, 2, 27, 1)
}
