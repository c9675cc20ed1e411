import type { ApiError } from '@carillon/api'

import type { ImportEntry } from './import-entry.ts'

/** The most entries in one request, few enough that a request takes about a second. */
const ENTRIES_MAX = 500
/** The most bytes of entries in one request, well below `REQUEST_BODY_MAX_BYTES`. */
const BYTES_MAX = 900_000

/**
 * Splits entries into batches. Where it cuts depends on the whole file, not on which of its entries still have to be created. So a
 * second import of the same file, at the same time or after a failure, sends the same batches with the same idempotency keys, and
 * the server creates no schedule twice.
 *
 * @param file all entries of the file, in their order
 */
export function batchesOf(entries: readonly ImportEntry[], file: readonly ImportEntry[]): ImportEntry[][] {
  const batchIndexes = new Map(file.map((entry, index) => [entry, Math.floor(index / ENTRIES_MAX)]))
  const batches = Map.groupBy(entries, (entry) => batchIndexes.get(entry))
  return [...batches.values()].flatMap(splitBySize)
}

function splitBySize(entries: readonly ImportEntry[]): ImportEntry[][] {
  const batches: ImportEntry[][] = []
  let batch: ImportEntry[] = []
  let bytes = 0
  for (const entry of entries) {
    const size = Buffer.byteLength(JSON.stringify(entry.input)) + 1
    if (batch.length > 0 && bytes + size > BYTES_MAX) {
      batches.push(batch)
      batch = []
      bytes = 0
    }
    batch.push(entry)
    bytes += size
  }
  return batch.length === 0 ? batches : [...batches, batch]
}

/** The entries that a refusal of the batch names. If many are wrong, the server names only the first ones. */
export function refusedEntries(batch: readonly ImportEntry[], { errors }: ApiError): ReadonlySet<ImportEntry> {
  const indexes = errors.map(({ field }) => Number(/^schedules\[(\d+)\]/.exec(field)?.[1] ?? Number.NaN))
  return new Set(indexes.flatMap((index) => batch[index] ?? []))
}

/** The most requests about single entries that are in progress at the same time. */
export const ENTRY_CONCURRENCY = 8
/** The most batches that are in progress at the same time: one travels while the server writes another. */
export const BATCH_CONCURRENCY = 2

/** Maps items with limited concurrency, and returns the results in order. The first failure rejects. */
export async function mapConcurrently<Item, Result>(
  items: readonly Item[],
  concurrency: number,
  act: (item: Item) => Promise<Result>,
): Promise<Result[]> {
  const results: Result[] = []
  const queue = items.entries()
  const work = async (): Promise<void> => {
    for (const [index, item] of queue) results[index] = await act(item)
  }
  await Promise.all(Array.from({ length: Math.min(concurrency, items.length) }, work))
  return results
}
