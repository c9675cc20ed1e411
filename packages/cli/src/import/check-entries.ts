import { ApiError, type SchedulePreview } from '@carillon/api'

import type { Cli } from '../cli.ts'
import { connect } from '../connection.ts'
import { inParallel } from '../in-parallel.ts'
import { patiently } from '../patiently.ts'
import { findNoSlot } from './check-slots.ts'
import { blamed, batchesOf } from './entry-batches.ts'
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
const BATCHES_AT_ONCE = 2

/**
 * Asks the service what it would make of each entry, many to a request, and refuses what it would refuse. Nothing is made.
 * @param file all entries of the file
 */
export async function checkEntries(
  cli: Cli,
  entries: readonly ImportEntry[],
  file: readonly ImportEntry[],
): Promise<CheckedEntries> {
  const answers = new Map<ImportEntry, CheckedEntry | Refusal>()
  await inParallel(batchesOf(entries, file), BATCHES_AT_ONCE, async (batch) => {
    for (const [entry, answer] of await checkBatch(cli, batch)) answers.set(entry, answer)
  })
  const all = entries.flatMap((entry) => answers.get(entry) ?? [])
  return { checked: all.filter((answer) => 'entry' in answer), refusals: all.filter((answer) => 'reason' in answer) }
}

/** Those that are to blame for the refusal of all are asked for one by one, and the others again. */
async function checkBatch(
  cli: Cli,
  batch: readonly ImportEntry[],
): Promise<readonly (readonly [ImportEntry, CheckedEntry | Refusal])[]> {
  if (batch.length === 0) return []
  const client = connect(cli)
  const inputs = batch.map(({ input }) => input)
  const answer = await refusalOr(() => patiently(cli, () => client.schedules.previewMany(inputs)))
  if (!(answer instanceof ApiError)) {
    return inParallel(batch.entries().toArray(), CONCURRENCY, async ([index, entry]) => {
      const preview = answer.items[index]
      return [entry, preview === undefined ? await checkEntry(cli, entry) : await checkedBy(cli, entry, preview)]
    })
  }
  const named = blamed(batch, answer)
  const singles = named.size === 0 ? batch : [...named]
  const checked = await inParallel(
    singles,
    CONCURRENCY,
    async (entry) => [entry, await checkEntry(cli, entry)] as const,
  )
  const others = named.size === 0 ? [] : batch.filter((entry) => !named.has(entry))
  return [...checked, ...(await checkBatch(cli, others))]
}

async function checkEntry(cli: Cli, entry: ImportEntry): Promise<CheckedEntry | Refusal> {
  const client = connect(cli)
  const answer = await refusalOr(() => patiently(cli, () => client.schedules.preview(entry.input)))
  return answer instanceof ApiError ? refusalOf(entry, answer) : checkedBy(cli, entry, answer)
}

async function checkedBy(
  cli: Cli,
  entry: ImportEntry,
  { description, slots, cadence }: SchedulePreview,
): Promise<CheckedEntry | Refusal> {
  const noSlot = await findNoSlot(cli, connect(cli), entry, cadence)
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
