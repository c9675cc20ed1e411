import { isStorable, messageOf, PAUSE_REASON_MAX_LENGTH, SCHEDULE_FIELDS, SKIPPED_SLOTS_MAX } from '@carillon/api'

import { uncheckedInput } from '../options/schedule-body.ts'
import { CliError } from '../process/cli-error.ts'
import type { ImportEntry, ImportFile, RefusedEntry } from './import-entry.ts'

/** One value of the list in a file, not yet checked. */
interface Item {
  readonly place: string
  readonly value: unknown
}

/** `paused` and `skippedSlots` are what an export adds to a schedule's own fields. */
const FIELDS = [...SCHEDULE_FIELDS, 'paused', 'skippedSlots']
const OBJECT_REASON = 'expected an object with name, cadence and target, got another value'
const PAUSED_REASON = `expected paused to be { "reason": "…" } with 1 to ${PAUSE_REASON_MAX_LENGTH} characters, got another value`
const SLOTS_REASON = `expected skippedSlots to be a list of at most ${SKIPPED_SLOTS_MAX} instants, got another value`

/** Reads an array, an object with `schedules` as `carillon export` writes it, or a single schedule. */
export function parseJson(text: string): ImportFile {
  return readItems(itemsOf(parseWhole(text)))
}

/** Reads one schedule per line. */
export function parseNdjson(text: string): ImportFile {
  const refusals: RefusedEntry[] = []
  const items: Item[] = []
  for (const [index, line] of text.split(/\r?\n/).entries()) {
    if (line.trim() === '') continue
    const place = `line ${index + 1}`
    try {
      items.push({ place, value: JSON.parse(line) })
    } catch (error) {
      refusals.push({ place, name: null, reason: `expected JSON, got invalid JSON: ${messageOf(error)}` })
    }
  }
  const file = readItems(items)
  return { ...file, refusals: [...refusals, ...file.refusals] }
}

function parseWhole(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch (error) {
    throw new CliError('file_invalid', `expected JSON, got invalid JSON: ${messageOf(error)}`, { cause: error })
  }
}

export function itemsOf(value: unknown): Item[] {
  const list = isObject(value) && 'schedules' in value ? value['schedules'] : value
  if (Array.isArray(list)) return list.map((item: unknown, index) => ({ place: `schedules[${index}]`, value: item }))
  if (isObject(list) && 'name' in list) return [{ place: 'the schedule', value: list }]
  throw new CliError(
    'file_invalid',
    'expected a list of schedules or an object with the field schedules, got another value',
  )
}

export function readItems(items: readonly Item[]): ImportFile {
  const entries: ImportEntry[] = []
  const refusals: RefusedEntry[] = []
  for (const { place, value } of items) {
    const read = readEntry(place, value)
    if ('reason' in read) refusals.push(read)
    else entries.push(read)
  }
  return { entries, refusals, notes: [] }
}

/** Checks only what the server does not see. The server checks the rest of an entry, with better messages. */
function readEntry(place: string, value: unknown): ImportEntry | RefusedEntry {
  if (!isObject(value)) return { place, name: null, reason: OBJECT_REASON }
  const { paused, skippedSlots, ...input } = value
  const name = typeof input['name'] === 'string' ? input['name'] : null
  const refuse = (reason: string): RefusedEntry => ({ place, name, reason })
  const unknown = Object.keys(value).filter((field) => !FIELDS.includes(field))
  if (unknown.length > 0) return refuse(`expected no other field, got ${unknown.join(', ')}: remove it`)
  const missing = ['name', 'cadence', 'target'].filter((field) => input[field] === undefined)
  if (missing.length > 0) return refuse(`expected ${missing.join(' and ')}, got nothing`)
  const pausedReason = readPaused(paused)
  if (pausedReason === undefined) return refuse(PAUSED_REASON)
  const slots = readSlots(skippedSlots)
  if (slots === undefined) return refuse(SLOTS_REASON)
  return { place, input: uncheckedInput(input), pausedReason, skippedSlots: slots }
}

/**
 * Reads the reason of a pause. Null: the schedule is not paused. Undefined: the value is not valid. The CLI checks it because the
 * server sees the reason only when it pauses the created schedule, too late to refuse the file. The server refuses the prefix
 * `auto:`, which marks pauses of its own, so the CLI replaces it.
 */
function readPaused(value: unknown): string | null | undefined {
  if (value === undefined || value === null || value === false) return null
  const written = isObject(value) && typeof value['reason'] === 'string' ? value['reason'].trim() : ''
  const reason = written.replace(/^auto:\s*/, 'paused automatically: ')
  const isReason = reason !== '' && reason.length <= PAUSE_REASON_MAX_LENGTH && isStorable(reason)
  return isReason ? reason : undefined
}

function readSlots(value: unknown): string[] | undefined {
  if (value === undefined) return []
  const isList =
    Array.isArray(value) &&
    value.length <= SKIPPED_SLOTS_MAX &&
    value.every((slot) => typeof slot === 'string' && !Number.isNaN(Date.parse(slot)))
  return isList ? (value as string[]) : undefined
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
