import { ApiError, type ScheduleInput, type SchedulePreview } from '@carillon/api'

import type { Cli } from '../process/cli.ts'
import { connect, retryWhileBusy } from '../service/connect.ts'
import { BATCH_CONCURRENCY, batchesOf, ENTRY_CONCURRENCY, mapConcurrently, refusedEntries } from './entry-batches.ts'
import type { ImportEntry, RefusedEntry } from './import-entry.ts'

/** An entry that the server would accept. */
export interface CheckedEntry {
  readonly entry: ImportEntry
  readonly description: string
  readonly nextSlotAt: string | null
}

interface CheckedEntries {
  readonly checked: readonly CheckedEntry[]
  readonly refusals: readonly RefusedEntry[]
}

/**
 * Asks the server for a preview of each entry, many entries per request, and collects the refusals. Creates nothing.
 * @param file all entries of the file, which `batchesOf` needs
 */
export async function checkEntries(
  cli: Cli,
  entries: readonly ImportEntry[],
  file: readonly ImportEntry[],
): Promise<CheckedEntries> {
  const answers = new Map<ImportEntry, CheckedEntry | RefusedEntry>()
  await mapConcurrently(batchesOf(entries, file), BATCH_CONCURRENCY, async (batch) => {
    for (const [entry, answer] of await checkBatch(cli, batch)) answers.set(entry, answer)
  })
  const all = entries.flatMap((entry) => answers.get(entry) ?? [])
  return { checked: all.filter((answer) => 'entry' in answer), refusals: all.filter((answer) => 'reason' in answer) }
}

/** Checks a batch. If the server refuses it, the entries that the refusal names are checked one by one, and the rest as a batch again. */
async function checkBatch(
  cli: Cli,
  batch: readonly ImportEntry[],
): Promise<readonly (readonly [ImportEntry, CheckedEntry | RefusedEntry])[]> {
  if (batch.length === 0) return []
  const client = connect(cli)
  const inputs = batch.map(({ input }) => input)
  const answer = await catchRefusal(() => retryWhileBusy(cli, () => client.schedules.previewMany(inputs)))
  if (!(answer instanceof ApiError)) {
    return mapConcurrently(batch.entries().toArray(), ENTRY_CONCURRENCY, async ([index, entry]) => {
      const preview = answer.items[index]
      return [entry, preview === undefined ? await checkEntry(cli, entry) : await checkPreview(cli, entry, preview)]
    })
  }
  const named = refusedEntries(batch, answer)
  const singles = named.size === 0 ? batch : [...named]
  const checked = await mapConcurrently(
    singles,
    ENTRY_CONCURRENCY,
    async (entry) => [entry, await checkEntry(cli, entry)] as const,
  )
  const others = named.size === 0 ? [] : batch.filter((entry) => !named.has(entry))
  return [...checked, ...(await checkBatch(cli, others))]
}

async function checkEntry(cli: Cli, entry: ImportEntry): Promise<CheckedEntry | RefusedEntry> {
  const client = connect(cli)
  const answer = await catchRefusal(() => retryWhileBusy(cli, () => client.schedules.preview(entry.input)))
  return answer instanceof ApiError ? refusalOf(entry, answer) : checkPreview(cli, entry, answer)
}

async function checkPreview(
  cli: Cli,
  entry: ImportEntry,
  { description, slots, cadence }: SchedulePreview,
): Promise<CheckedEntry | RefusedEntry> {
  const unknown = await findUnknownSlot(cli, entry, cadence)
  if (unknown !== undefined) {
    const reason = `skippedSlots: expected slots of the schedule, got ${unknown}, which is none: remove it`
    return { place: entry.place, name: entry.input.name, reason }
  }
  return { entry, description, nextSlotAt: slots[0]?.scheduledFor ?? null }
}

/** The first skipped slot that is no slot of the cadence. The server would refuse it only after it created the schedule. */
async function findUnknownSlot(
  cli: Cli,
  { skippedSlots }: ImportEntry,
  cadence: ScheduleInput['cadence'],
): Promise<string | undefined> {
  const client = connect(cli)
  for (const written of skippedSlots) {
    const slot = Date.parse(written)
    if (slot <= cli.clock.now()) continue
    const from = new Date(slot - 1).toISOString()
    const { slots } = await retryWhileBusy(cli, () => client.cadence.preview({ cadence, from, count: 1 }))
    if (slots[0]?.scheduledFor !== new Date(slot).toISOString()) return written
  }
  return undefined
}

/** Returns the error if the server refuses the input. Any other error ends the import. */
export async function catchRefusal<Answer>(ask: () => Promise<Answer>): Promise<Answer | ApiError> {
  try {
    return await ask()
  } catch (error) {
    if (error instanceof ApiError && error.code === 'invalid_input') return error
    throw error
  }
}

export function refusalOf({ place, input }: ImportEntry, { message, errors }: ApiError): RefusedEntry {
  const reasons = errors.map((problem) => `${problem.field}: ${problem.message}`)
  const reason = errors.length === 0 ? message : reasons.join('; ')
  return { place, name: input.name, reason }
}
