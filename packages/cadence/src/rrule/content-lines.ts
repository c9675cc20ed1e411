import type { InputReader } from '../input-reader.ts'
import { quote } from '../problem.ts'

/** The RRULE's own text, and where it begins in the field. */
export interface RuleText {
  readonly text: string
  readonly position: number
}

/**
 * Reads `rule` as a block of iCalendar lines: `DTSTART` supplies `start` (its TZID the `timezone`), `EXDATE` and `RDATE`
 * supply the lists. A bare `FREQ=…` is a block of one line.
 */
export function readContentLines(reader: InputReader, text: string): RuleText | undefined {
  const rules: RuleText[] = []
  const dates = { EXDATE: [] as string[], RDATE: [] as string[] }
  let position = 0
  let isSound = true
  const refuse = (expected: string, found: string, at: number): void => {
    isSound = false
    reader.problems.add('unsupported', 'rule', expected, quote(found), at)
  }
  for (const line of text.split('\n')) {
    const at = position
    position += line.length + 1
    const trimmed = line.replace(/\r$/, '')
    if (trimmed === '') continue
    const match = /^(DTSTART|RRULE|EXDATE|RDATE)((?:;[^:]*)?):(.*)$/i.exec(trimmed)
    const [, name = 'RRULE', params = '', value = trimmed] = match ?? []
    const valueAt = at + trimmed.length - value.length
    const property = name.toUpperCase()
    readZoneParameter(reader, params)
    if (property === 'RRULE') rules.push({ text: value, position: valueAt })
    else if (property === 'DTSTART') reader.supply('start', isoOf(value), 'rule')
    else if (property === 'EXDATE' || property === 'RDATE') dates[property].push(...value.split(',').map(isoOf))
  }
  if (dates.EXDATE.length > 0) reader.supply('exdates', dates.EXDATE, 'rule')
  if (dates.RDATE.length > 0) reader.supply('rdates', dates.RDATE, 'rule')
  const [rule, second] = rules
  if (second !== undefined) refuse('one RRULE', second.text, second.position)
  else if (rule === undefined) refuse('an RRULE such as FREQ=DAILY', text, 0)
  return isSound ? rule : undefined
}

function readZoneParameter(reader: InputReader, params: string): void {
  const zoneName = /;TZID=([^;]+)/i.exec(params)?.[1]
  if (zoneName === undefined || reader.value('timezone') === zoneName) return
  reader.supply('timezone', zoneName, 'rule')
}

/** `20260105T090000Z` as `2026-01-05T09:00:00Z`; what is neither is left for the reader of times to refuse. */
function isoOf(text: string): string {
  return text.replace(/^(\d{4})(\d\d)(\d\d)(?:T(\d\d)(\d\d)(\d\d)(Z?))?$/i, (...match: (string | undefined)[]) => {
    const [, year, month, day, hour, minute, second, zulu] = match
    return hour === undefined ? `${year}-${month}-${day}` : `${year}-${month}-${day}T${hour}:${minute}:${second}${zulu}`
  })
}
