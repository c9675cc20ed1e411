import type { ScheduleInput } from '@carillon/api'

import { CliError } from '../cli-error.ts'
import type { ImportEntry, ImportFile, Refusal } from './import-entry.ts'

/** One thing of a file, before anybody looked what it is. */
interface Item {
  readonly place: string
  readonly value: unknown
}

const FIELDS = ['name', 'cadence', 'target', 'policy', 'grantId', 'ownerSubject', 'paused', 'skippedSlots']

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

/** As JSON, in YAML 1.2. The line of each schedule is known. */
export async function parseYaml(text: string): Promise<ImportFile> {
  const { isMap, isNode, isSeq, LineCounter, parseDocument } = await import('yaml')
  const lineCounter = new LineCounter()
  const document = parseDocument(text, { lineCounter })
  const [fault] = document.errors
  if (fault !== undefined) throw new CliError('file_invalid', `expected YAML: ${fault.message.split('\n')[0] ?? ''}`)
  const { contents } = document
  const list = isMap(contents) && contents.has('schedules') ? contents.get('schedules', true) : contents
  const places = isSeq(list)
    ? list.items.map((item) => `line ${lineCounter.linePos(isNode(item) ? (item.range?.[0] ?? 0) : 0).line}`)
    : []
  const items = itemsOf(document.toJS())
  return readItems(items.map(({ place, value }, index) => ({ place: places[index] ?? place, value })))
}

function parseWhole(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch (error) {
    throw new CliError('file_invalid', `expected JSON: ${messageOf(error)}`, { cause: error })
  }
}

function itemsOf(value: unknown): Item[] {
  const list = isObject(value) && 'schedules' in value ? value['schedules'] : value
  if (Array.isArray(list)) return list.map((item: unknown, index) => ({ place: `schedules[${index}]`, value: item }))
  if (isObject(list) && 'name' in list) return [{ place: 'the schedule', value: list }]
  throw new CliError('file_invalid', 'expected a list of schedules, or an object with one in "schedules"')
}

function readItems(items: readonly Item[]): ImportFile {
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
  if (pausedReason === undefined) return { place, name, reason: 'expected paused to be { "reason": "…" }' }
  const slots = readSlots(skippedSlots)
  if (slots === undefined) return { place, name, reason: 'expected skippedSlots to be a list of instants' }
  return { place, input: input as unknown as ScheduleInput, pausedReason, skippedSlots: slots }
}

function readPaused(value: unknown): string | null | undefined {
  if (value === undefined || value === null || value === false) return null
  return isObject(value) && typeof value['reason'] === 'string' ? value['reason'] : undefined
}

function readSlots(value: unknown): string[] | undefined {
  if (value === undefined) return []
  const isList =
    Array.isArray(value) && value.every((slot) => typeof slot === 'string' && !Number.isNaN(Date.parse(slot)))
  return isList ? (value as string[]) : undefined
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}
