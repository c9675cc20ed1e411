import { CliError } from '../cli-error.ts'
import { uncheckedInput } from '../unchecked-input.ts'
import type { ImportEntry, ImportFile, Refusal } from './import-entry.ts'

/** One thing of a file, before anybody looked what it is. */
interface Item {
  readonly place: string
  readonly value: unknown
}

const FIELDS = ['name', 'cadence', 'target', 'policy', 'grantId', 'ownerSubject', 'paused', 'skippedSlots']

const REASON_MAX = 500
const SLOTS_MAX = 100
const PAUSED_REASON = `expected paused to be { "reason": "…" }, a text of 1 to ${REASON_MAX} characters`
const SLOTS_REASON = `expected skippedSlots to be a list of at most ${SLOTS_MAX} instants`

/** An array, or an object with `schedules` as `carillon export` writes it, or a single schedule. */
export function parseJson(text: string): ImportFile {
  return readItems(itemsOf(parseWhole(text)))
}

/** A schedule on each line. */
export function parseNdjson(text: string): ImportFile {
  const refusals: Refusal[] = []
  const items: Item[] = []
  for (const [index, line] of text.split(/\r?\n/).entries()) {
    if (line.trim() === '') continue
    const place = `line ${index + 1}`
    try {
      items.push({ place, value: JSON.parse(line) })
    } catch (error) {
      refusals.push({ place, name: null, reason: `expected JSON: ${messageOf(error)}` })
    }
  }
  const file = readItems(items)
  return { ...file, refusals: [...refusals, ...file.refusals] }
}

function parseWhole(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch (error) {
    throw new CliError('file_invalid', `expected JSON: ${messageOf(error)}`, { cause: error })
  }
}

export function itemsOf(value: unknown): Item[] {
  const list = isObject(value) && 'schedules' in value ? value['schedules'] : value
  if (Array.isArray(list)) return list.map((item: unknown, index) => ({ place: `schedules[${index}]`, value: item }))
  if (isObject(list) && 'name' in list) return [{ place: 'the schedule', value: list }]
  throw new CliError('file_invalid', 'expected a list of schedules, or an object with one in "schedules"')
}

export function readItems(items: readonly Item[]): ImportFile {
  const entries: ImportEntry[] = []
  const refusals: Refusal[] = []
  for (const { place, value } of items) {
    const read = readEntry(place, value)
    if ('reason' in read) refusals.push(read)
    else entries.push(read)
  }
  return { entries, refusals, notes: [] }
}

/** Only what would get lost on the way: the service checks the rest, and says better what is wrong. */
function readEntry(place: string, value: unknown): ImportEntry | Refusal {
  if (!isObject(value)) return { place, name: null, reason: 'expected an object with name, cadence and target' }
  const { paused, skippedSlots, ...input } = value
  const name = typeof input['name'] === 'string' ? input['name'] : null
  const unknown = Object.keys(value).filter((field) => !FIELDS.includes(field))
  if (unknown.length > 0) return { place, name, reason: `expected no field ${unknown.join(', ')}: leave it out` }
  const missing = ['name', 'cadence', 'target'].filter((field) => input[field] === undefined)
  if (missing.length > 0) return { place, name, reason: `expected ${missing.join(' and ')}, got nothing` }
  const pausedReason = readPaused(paused)
  if (pausedReason === undefined) return { place, name, reason: PAUSED_REASON }
  const slots = readSlots(skippedSlots)
  if (slots === undefined) return { place, name, reason: SLOTS_REASON }
  return { place, input: uncheckedInput(input), pausedReason, skippedSlots: slots }
}

/**
 * What the service would hear of only after the schedule is made, too late to refuse the file. A pause that is not
 * somebody's has a reason that begins with auto:, which nobody may give.
 */
function readPaused(value: unknown): string | null | undefined {
  if (value === undefined || value === null || value === false) return null
  const written = isObject(value) && typeof value['reason'] === 'string' ? value['reason'].trim() : ''
  const reason = written.replace(/^auto:\s*/, 'paused automatically: ')
  const isReason = reason !== '' && reason.length <= REASON_MAX && !reason.includes('\0') && reason.isWellFormed()
  return isReason ? reason : undefined
}

function readSlots(value: unknown): string[] | undefined {
  if (value === undefined) return []
  const isList =
    Array.isArray(value) &&
    value.length <= SLOTS_MAX &&
    value.every((slot) => typeof slot === 'string' && !Number.isNaN(Date.parse(slot)))
  return isList ? (value as string[]) : undefined
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}
