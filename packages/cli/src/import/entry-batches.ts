import type { ApiError } from '@carillon/api'

import type { ImportEntry } from './import-entry.ts'

/** How many entries one request carries: few enough that a request ends within a second or so. */
const ENTRIES_MAX = 500
/** The service takes bodies of little more than 1 MiB. */
const BYTES_MAX = 900_000

/**
 * Cuts entries into what one request can carry. Where a file is cut depends on the file alone: if it is imported twice at
 * once, or again after the first half, the same entries go together under the same key, and none is made twice.
 *
 * @param file all entries of the file, in their order
 */
export function batchesOf(entries: readonly ImportEntry[], file: readonly ImportEntry[]): ImportEntry[][] {
  const places = new Map(file.map((entry, index) => [entry, Math.floor(index / ENTRIES_MAX)]))
  const parts = Map.groupBy(entries, (entry) => places.get(entry))
  return [...parts.values()].flatMap(cutBySize)
}

function cutBySize(entries: readonly ImportEntry[]): ImportEntry[][] {
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

/** Which entries of a batch a refusal is about; not all of them if there are many, for it tells the first problems only. */
export function blamed(batch: readonly ImportEntry[], { errors }: ApiError): ReadonlySet<ImportEntry> {
  const indexes = errors.map(({ field }) => Number(/^schedules\[(\d+)\]/.exec(field)?.[1] ?? Number.NaN))
  return new Set(indexes.flatMap((index) => batch[index] ?? []))
}
