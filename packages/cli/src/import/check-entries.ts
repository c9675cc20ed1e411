import { ApiError, type Preview } from '@carillon/api'

import type { Cli } from '../cli.ts'
import { connect } from '../connection.ts'
import { inParallel } from '../in-parallel.ts'
import { patiently } from '../patiently.ts'
import { canonicalJson } from '../portable-schedule.ts'
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

/** Asks the service what it makes of each cadence, once for those that are equal. Nothing is made. */
export async function checkEntries(cli: Cli, entries: readonly ImportEntry[]): Promise<CheckedEntries> {
  const client = connect(cli)
  const cadences = new Map(entries.map(({ input }) => [canonicalJson(input.cadence), input.cadence]))
  const answers = await inParallel([...cadences], CONCURRENCY, async ([text, cadence]) => {
    const ask = () => patiently(cli, () => client.cadence.preview({ cadence, count: 1 }))
    return [text, await refusalOr(ask)] as const
  })
  const byCadence = new Map<string, Preview | ApiError>(answers)
  const checked: CheckedEntry[] = []
  const refusals: Refusal[] = []
  for (const entry of entries) {
    const answer = byCadence.get(canonicalJson(entry.input.cadence))
    if (answer instanceof ApiError) refusals.push(refusalOf(entry, answer))
    else if (answer !== undefined) {
      const { description, slots } = answer
      checked.push({ entry, description, nextSlotAt: slots[0]?.scheduledFor ?? null })
    }
  }
  return { checked, refusals }
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
  const reason =
    errors.length === 0 ? message : errors.map((problem) => `${problem.field}: ${problem.message}`).join('; ')
  return { place, name: input.name, reason }
}
