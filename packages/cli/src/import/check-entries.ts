import { ApiError } from '@carillon/api'

import type { Cli } from '../cli.ts'
import { connect } from '../connection.ts'
import { inParallel } from '../in-parallel.ts'
import { patiently } from '../patiently.ts'
import { findNoSlot } from './check-slots.ts'
import type { ImportEntry, Refusal } from './import-entry.ts'

export interface CheckedEntry {
  readonly entry: ImportEntry
  readonly description: string
  readonly nextSlotAt: string | null
}

interface CheckedEntries {
  readonly checked: readonly CheckedEntry[]
  readonly refusals: readonly Refusal[]
}

const CONCURRENCY = 8

/** Asks the service what it would make of each entry, and refuses what it would refuse. Nothing is made. */
export async function checkEntries(cli: Cli, entries: readonly ImportEntry[]): Promise<CheckedEntries> {
  const answers = await inParallel(entries, CONCURRENCY, (entry) => checkEntry(cli, entry))
  return {
    checked: answers.filter((answer) => 'entry' in answer),
    refusals: answers.filter((answer) => 'reason' in answer),
  }
}

async function checkEntry(cli: Cli, entry: ImportEntry): Promise<CheckedEntry | Refusal> {
  const client = connect(cli)
  const answer = await refusalOr(() => patiently(cli, () => client.schedules.preview(entry.input)))
  if (answer instanceof ApiError) return refusalOf(entry, answer)
  const { description, slots, cadence } = answer
  const noSlot = await findNoSlot(cli, client, entry, cadence)
  if (noSlot !== undefined) {
    const reason = `skippedSlots: expected slots of the schedule, got ${noSlot}, which is none: leave it out`
    return { place: entry.place, name: entry.input.name, reason }
  }
  return { entry, description, nextSlotAt: slots[0]?.scheduledFor ?? null }
}

/** What is wrong with an input is told with it; everything else ends the import. */
export async function refusalOr<Answer>(ask: () => Promise<Answer>): Promise<Answer | ApiError> {
  try {
    return await ask()
  } catch (error) {
    if (error instanceof ApiError && error.code === 'invalid_input') return error
    throw error
  }
}

export function refusalOf({ place, input }: ImportEntry, { message, errors }: ApiError): Refusal {
  // Some are sentences, and some are parts of one.
  const reasons = errors.map((problem) => `${problem.field}: ${problem.message.replace(/\.$/, '')}`)
  const reason = errors.length === 0 ? message : reasons.join('; ')
  return { place, name: input.name, reason }
}
