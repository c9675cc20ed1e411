import { foundText } from '../input/found.ts'
import type { InputReader } from '../input/input-reader.ts'
import { findZone } from '../time/zone.ts'

/** A line or value, and where it begins in the field. */
export interface RuleText {
  readonly text: string
  readonly position: number
}

const KNOWN_LINES = 'only DTSTART, RRULE, EXDATE and RDATE lines'

/**
 * Reads `rule` as a block of iCalendar lines and returns the text of its RRULE. `DTSTART` sets `start`, its TZID sets
 * `timezone`, `EXDATE` sets `exdates` and `RDATE` sets `rdates`. A bare `FREQ=…` is a block of one line.
 */
export function readContentLines(reader: InputReader, text: string): RuleText | undefined {
  const rules: RuleText[] = []
  const dates = { EXDATE: [] as string[], RDATE: [] as string[] }
  const otherZones: RuleText[] = []
  for (const line of splitLines(text)) {
    const match = /^(DTSTART|RRULE|EXDATE|RDATE)((?:;(?:"[^"]*"|[^":])*)?):(.*)$/i.exec(line.text)
    const [, name = 'RRULE', params = '', value = line.text] = match ?? []
    const property = name.toUpperCase()
    const zoneName = /;TZID="?([^;"]+)/i.exec(params)?.[1]
    if (match === null && /^[A-Z-]+[;:]/i.test(line.text)) {
      reader.problems.add('unsupported', 'rule', KNOWN_LINES, foundText(line.text), line.position)
    } else if (property === 'DTSTART') {
      if (zoneName !== undefined) supplyZone(reader, zoneName)
      reader.supply('start', value, 'rule')
    } else if (property === 'EXDATE' || property === 'RDATE') {
      if (zoneName !== undefined) otherZones.push({ text: zoneName, position: line.position })
      dates[property].push(...value.split(','))
    } else {
      rules.push({ text: value, position: line.position + line.text.length - value.length })
    }
  }
  for (const other of otherZones) checkZone(reader, other)
  if (dates.EXDATE.length > 0) reader.supply('exdates', dates.EXDATE, 'rule')
  if (dates.RDATE.length > 0) reader.supply('rdates', dates.RDATE, 'rule')
  const [rule, second] = rules
  if (rule === undefined) reader.problems.add('syntax', 'rule', 'an RRULE such as FREQ=DAILY', foundText(text))
  if (second === undefined) return rule
  reader.problems.add('unsupported', 'rule', 'one RRULE', foundText(second.text), second.position)
  return undefined
}

/** Unfolds long lines: a line that begins with a space or tab continues the previous one. */
function splitLines(text: string): RuleText[] {
  const lines: RuleText[] = []
  let position = 0
  for (const raw of text.split('\n')) {
    const line = raw.replace(/\r$/, '')
    const previous = lines.at(-1)
    if (/^[ \t]/.test(line) && previous !== undefined) {
      lines[lines.length - 1] = { ...previous, text: previous.text + line.slice(1) }
    } else if (line !== '') {
      lines.push({ text: line, position })
    }
    position += raw.length + 1
  }
  return lines
}

/** Sets `timezone` to the zone of DTSTART. Adds a problem if the input names another zone. */
function supplyZone(reader: InputReader, zoneName: string): void {
  if (!isSameZone(reader.value('timezone'), zoneName)) reader.supply('timezone', zoneName, 'rule')
}

/** Rejects an EXDATE or RDATE line with another zone than the rule's, because its dates are read in the rule's zone. */
function checkZone(reader: InputReader, { text, position }: RuleText): void {
  const zoneName = reader.value('timezone') ?? 'UTC'
  if (isSameZone(zoneName, text)) return
  reader.problems.add('conflict', 'rule', `the zone of the rule, ${foundText(zoneName)}`, foundText(text), position)
}

function isSameZone(given: unknown, zoneName: string): boolean {
  return typeof given === 'string' && findZone(given) === findZone(zoneName)
}
