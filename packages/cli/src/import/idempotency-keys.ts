import { createHash } from 'node:crypto'

import { canonicalJson } from '../portable-schedule.ts'
import type { ImportEntry } from './import-entry.ts'

/**
 * A key for each entry, made from what it says: importing the same file again within a day makes nothing twice, whatever
 * became of the answers of the first time. Equal entries of one file are counted, for each is one.
 */
export function idempotencyKeys(entries: readonly ImportEntry[]): ReadonlyMap<ImportEntry, string> {
  const counts = new Map<string, number>()
  return new Map(
    entries.map((entry) => {
      const text = canonicalJson(entry.input)
      const count = (counts.get(text) ?? 0) + 1
      counts.set(text, count)
      return [entry, keyOf(`${text}\n${count}`)]
    }),
  )
}

/** For an entry whose schedule was made by a key before, and is gone: asked with the same key, it would be answered so. */
export function keyAfter(key: string, deletedId: string): string {
  return keyOf(`${key}\n${deletedId}`)
}

/** A key that is the same for the same text, and for no other. */
export function keyOf(text: string): string {
  return `import:${createHash('sha256').update(text).digest('hex')}`
}
